"""What the integration tests stand on: the gateway's process, origins, clients, certificates."""
