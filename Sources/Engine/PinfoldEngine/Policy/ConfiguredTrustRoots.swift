import PinfoldConfiguration

/// The roots as the configuration names them. The TLS module has a type of the same name, for
/// loaded roots.
typealias ConfiguredRoots = TrustRoots
