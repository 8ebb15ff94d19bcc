"""Live views as Jupyter widgets.

The life of a view: it is created on vcnb's own thread (``vcnb.notebook.painter``) with the state of that moment, and shown by the
cell that asked for it as one bundle: the widget, the same as static HTML, and text. Objects of the cluster that change make it
dirty; the thread then renders the sections anew (``vcnb.scene``) and sends those that differ. Clicks come back as messages, on
whatever thread the kernel serves them; they are only passed on. When what is shown has ended, the widget is replaced by the static
HTML in every cell that shows it, so that a saved notebook shows how it ended, and its models are closed.

A front end that does not run the widget never says that it has mounted it; after five seconds its output is updated as static HTML
instead. ``static/`` is built from ``widgets/`` and committed; importing the package itself imports nothing heavy.
"""
