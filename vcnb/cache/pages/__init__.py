"""The page store: the cached bytes of one worker, on a local disk.

    lock                 held by the process that owns the directory
    index                a journal of what is cached, where it lies, and its checksums
    segments/NNNN        many small files, one behind the other
    large/xx/NNNN        one contiguous range of one file each (a mebibyte and more)

Data is written first and its index record after it, so whatever moment a process ends at, what the index names is whole;
what it does not name is deleted at the next start. Every page has a checksum that is looked at whenever it is read: a page
that the disk has not kept is dropped, never handed out. Names of files never become names on the disk.
"""

from vcnb.cache.pages.catalogue import CannotKeep, Held
from vcnb.cache.pages.checksum import STEP
from vcnb.cache.pages.drafts import Draft, Part
from vcnb.cache.pages.store import PageStore, Reservation

__all__ = ["STEP", "CannotKeep", "Draft", "Held", "PageStore", "Part", "Reservation"]
