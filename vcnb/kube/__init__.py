"""vcnb on Kubernetes: custom resource definitions made from the types, the controller process, and what it needs there."""
