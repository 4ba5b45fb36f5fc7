import PinfoldTLS

/// Trust anchors ready for use. The alias avoids a clash with the configuration's type of the same
/// name, which describes their sources.
typealias TLSTrustRoots = TrustRoots
