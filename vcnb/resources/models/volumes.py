"""Volumes of pods, by source."""

from __future__ import annotations

from vcnb.resources.models.base import Amount, Int32, Int64, LocalRef, Model, TextMap
from vcnb.resources.models.claims import ClaimTemplate
from vcnb.resources.models.containers import FieldRef, ResourceFieldRef
from vcnb.resources.models.selectors import LabelSelector

__all__ = [
    "AwsElasticBlockStoreVolume",
    "AzureDiskVolume",
    "AzureFileVolume",
    "CephfsVolume",
    "CinderVolume",
    "ClusterTrustBundle",
    "ConfigMapVolume",
    "CsiVolume",
    "DownwardFile",
    "DownwardVolume",
    "EmptyDirVolume",
    "EphemeralVolume",
    "FcVolume",
    "FlexVolume",
    "FlockerVolume",
    "GcePersistentDiskVolume",
    "GitRepoVolume",
    "GlusterfsVolume",
    "HostPathVolume",
    "ImageVolume",
    "IscsiVolume",
    "KeyToPath",
    "NfsVolume",
    "PersistentVolumeClaimVolume",
    "PhotonPersistentDiskVolume",
    "PodCertificate",
    "PortworxVolume",
    "ProjectedDownward",
    "ProjectedItems",
    "ProjectedSource",
    "ProjectedVolume",
    "QuobyteVolume",
    "RbdVolume",
    "ScaleIOVolume",
    "SecretVolume",
    "ServiceAccountToken",
    "StorageosVolume",
    "Volume",
    "VsphereVolume",
]


class AwsElasticBlockStoreVolume(Model):
    """An AWS disk."""

    volume_id: str
    fs_type: str | None = None
    partition: Int32 | None = None
    read_only: bool | None = None


class AzureDiskVolume(Model):
    """An Azure disk."""

    disk_name: str
    disk_uri: str
    caching_mode: str | None = None
    fs_type: str | None = None
    kind: str | None = None
    read_only: bool | None = None


class AzureFileVolume(Model):
    """An Azure file share."""

    secret_name: str
    share_name: str
    read_only: bool | None = None


class CephfsVolume(Model):
    """A Ceph file system."""

    monitors: list[str]
    path: str | None = None
    read_only: bool | None = None
    secret_file: str | None = None
    secret_ref: LocalRef | None = None
    user: str | None = None


class CinderVolume(Model):
    """An OpenStack disk."""

    volume_id: str
    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalRef | None = None


class KeyToPath(Model):
    """One key as a file; ``mode`` is the file mode."""

    key: str
    path: str
    mode: Int32 | None = None


class ConfigMapVolume(Model):
    """A ConfigMap as files."""

    default_mode: Int32 | None = None
    items: list[KeyToPath] | None = None
    name: str | None = None
    optional: bool | None = None


class CsiVolume(Model):
    """Storage of a CSI driver for this pod alone."""

    driver: str
    fs_type: str | None = None
    node_publish_secret_ref: LocalRef | None = None
    read_only: bool | None = None
    volume_attributes: TextMap | None = None


class DownwardFile(Model):
    """A field of the pod as a file."""

    path: str
    field_ref: FieldRef | None = None
    mode: Int32 | None = None
    resource_field_ref: ResourceFieldRef | None = None


class DownwardVolume(Model):
    """Fields of the pod as files."""

    default_mode: Int32 | None = None
    items: list[DownwardFile] | None = None


class EmptyDirVolume(Model):
    """A directory that lives as long as the pod; ``medium: Memory`` for RAM."""

    medium: str | None = None
    size_limit: Amount | None = None


class EphemeralVolume(Model):
    """A claim made for this pod."""

    volume_claim_template: ClaimTemplate | None = None


class FcVolume(Model):
    """A Fibre Channel disk."""

    fs_type: str | None = None
    lun: Int32 | None = None
    read_only: bool | None = None
    target_wwns: list[str] | None = None
    wwids: list[str] | None = None


class FlexVolume(Model):
    """Storage of a FlexVolume driver."""

    driver: str
    fs_type: str | None = None
    options: TextMap | None = None
    read_only: bool | None = None
    secret_ref: LocalRef | None = None


class FlockerVolume(Model):
    """A Flocker dataset."""

    dataset_name: str | None = None
    dataset_uuid: str | None = None


class GcePersistentDiskVolume(Model):
    """A Google disk."""

    pd_name: str
    fs_type: str | None = None
    partition: Int32 | None = None
    read_only: bool | None = None


class GitRepoVolume(Model):
    """A git checkout (deprecated in Kubernetes)."""

    repository: str
    directory: str | None = None
    revision: str | None = None


class GlusterfsVolume(Model):
    """A GlusterFS volume."""

    endpoints: str
    path: str
    read_only: bool | None = None


class HostPathVolume(Model):
    """A path of the node."""

    path: str
    type: str | None = None


class ImageVolume(Model):
    """An OCI image or artifact as files."""

    pull_policy: str | None = None
    reference: str | None = None


class IscsiVolume(Model):
    """An iSCSI disk."""

    iqn: str
    lun: Int32
    target_portal: str
    chap_auth_discovery: bool | None = None
    chap_auth_session: bool | None = None
    fs_type: str | None = None
    initiator_name: str | None = None
    iscsi_interface: str | None = None
    portals: list[str] | None = None
    read_only: bool | None = None
    secret_ref: LocalRef | None = None


class NfsVolume(Model):
    """An NFS export."""

    path: str
    server: str
    read_only: bool | None = None


class PersistentVolumeClaimVolume(Model):
    """An existing claim."""

    claim_name: str
    read_only: bool | None = None


class PhotonPersistentDiskVolume(Model):
    """A Photon disk."""

    pd_id: str
    fs_type: str | None = None


class PortworxVolume(Model):
    """A Portworx volume."""

    volume_id: str
    fs_type: str | None = None
    read_only: bool | None = None


class ClusterTrustBundle(Model):
    """Certificates of a signer as a file."""

    path: str
    label_selector: LabelSelector | None = None
    name: str | None = None
    optional: bool | None = None
    signer_name: str | None = None


class ProjectedItems(Model):
    """Keys of a ConfigMap or Secret inside a projected volume."""

    items: list[KeyToPath] | None = None
    name: str | None = None
    optional: bool | None = None


class ProjectedDownward(Model):
    """Fields of the pod inside a projected volume."""

    items: list[DownwardFile] | None = None


class PodCertificate(Model):
    """A certificate made for the pod."""

    key_type: str
    signer_name: str
    certificate_chain_path: str | None = None
    credential_bundle_path: str | None = None
    key_path: str | None = None
    max_expiration_seconds: Int32 | None = None
    user_annotations: TextMap | None = None


class ServiceAccountToken(Model):
    """A token of the pod's service account."""

    path: str
    audience: str | None = None
    expiration_seconds: Int64 | None = None


class ProjectedSource(Model):
    """One source of a projected volume."""

    cluster_trust_bundle: ClusterTrustBundle | None = None
    config_map: ProjectedItems | None = None
    downward_api: ProjectedDownward | None = None
    pod_certificate: PodCertificate | None = None
    secret: ProjectedItems | None = None
    service_account_token: ServiceAccountToken | None = None


class ProjectedVolume(Model):
    """Several sources in one directory."""

    default_mode: Int32 | None = None
    sources: list[ProjectedSource] | None = None


class QuobyteVolume(Model):
    """A Quobyte volume."""

    registry: str
    volume: str
    group: str | None = None
    read_only: bool | None = None
    tenant: str | None = None
    user: str | None = None


class RbdVolume(Model):
    """A Ceph block device."""

    image: str
    monitors: list[str]
    fs_type: str | None = None
    keyring: str | None = None
    pool: str | None = None
    read_only: bool | None = None
    secret_ref: LocalRef | None = None
    user: str | None = None


class ScaleIOVolume(Model):
    """A ScaleIO volume."""

    gateway: str
    secret_ref: LocalRef
    system: str
    fs_type: str | None = None
    protection_domain: str | None = None
    read_only: bool | None = None
    ssl_enabled: bool | None = None
    storage_mode: str | None = None
    storage_pool: str | None = None
    volume_name: str | None = None


class SecretVolume(Model):
    """A Secret as files."""

    default_mode: Int32 | None = None
    items: list[KeyToPath] | None = None
    optional: bool | None = None
    secret_name: str | None = None


class StorageosVolume(Model):
    """A StorageOS volume."""

    fs_type: str | None = None
    read_only: bool | None = None
    secret_ref: LocalRef | None = None
    volume_name: str | None = None
    volume_namespace: str | None = None


class VsphereVolume(Model):
    """A vSphere disk."""

    volume_path: str
    fs_type: str | None = None
    storage_policy_id: str | None = None
    storage_policy_name: str | None = None


class Volume(Model):
    """A volume of a pod: a name and exactly one source."""

    name: str
    aws_elastic_block_store: AwsElasticBlockStoreVolume | None = None
    azure_disk: AzureDiskVolume | None = None
    azure_file: AzureFileVolume | None = None
    cephfs: CephfsVolume | None = None
    cinder: CinderVolume | None = None
    config_map: ConfigMapVolume | None = None
    csi: CsiVolume | None = None
    downward_api: DownwardVolume | None = None
    empty_dir: EmptyDirVolume | None = None
    ephemeral: EphemeralVolume | None = None
    fc: FcVolume | None = None
    flex_volume: FlexVolume | None = None
    flocker: FlockerVolume | None = None
    gce_persistent_disk: GcePersistentDiskVolume | None = None
    git_repo: GitRepoVolume | None = None
    glusterfs: GlusterfsVolume | None = None
    host_path: HostPathVolume | None = None
    image: ImageVolume | None = None
    iscsi: IscsiVolume | None = None
    nfs: NfsVolume | None = None
    persistent_volume_claim: PersistentVolumeClaimVolume | None = None
    photon_persistent_disk: PhotonPersistentDiskVolume | None = None
    portworx_volume: PortworxVolume | None = None
    projected: ProjectedVolume | None = None
    quobyte: QuobyteVolume | None = None
    rbd: RbdVolume | None = None
    scale_i_o: ScaleIOVolume | None = None
    secret: SecretVolume | None = None
    storageos: StorageosVolume | None = None
    vsphere_volume: VsphereVolume | None = None
