import PinfoldConfiguration

/// The roots as the configuration names them; the TLS target has a type of the same name, which
/// they are loaded into.
typealias ConfiguredRoots = TrustRoots
