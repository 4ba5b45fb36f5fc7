import PinfoldTLS

/// Loaded trust anchors. The configuration has a type of the same name, which says where they come
/// from.
typealias LoadedRoots = TrustRoots
