import PinfoldTLS

/// Trust anchors ready for use; the configuration has a type of the same name, which says where
/// they come from.
typealias LoadedRoots = TrustRoots
