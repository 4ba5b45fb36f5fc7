/// How far an address reaches that is not global, from IANA's special-purpose address registries
/// (RFC 6890) and the published addresses of clouds' metadata services. The raw value is the word
/// for replies and logs.
public enum AddressScope: String, Hashable, Sendable, CaseIterable {
    /// This host: `127.0.0.0/8`, `::1`.
    case loopback
    /// This link: `169.254.0.0/16`, `fe80::/10`.
    case linkLocal = "link_local"
    /// A site's private networks: RFC 1918, unique local `fc00::/7`, old site-local `fec0::/10`.
    case `private`
    /// A carrier's shared space, `100.64.0.0/10` (RFC 6598).
    case shared
    /// A cloud's metadata service, whatever range its address is in.
    case metadata
    /// "This network", `0.0.0.0/8`, and `::`: connecting to one reaches this host.
    case unspecified
    /// `224.0.0.0/4`, `ff00::/8`.
    case multicast
    /// `255.255.255.255`.
    case broadcast
    /// Documentation, benchmarking, protocol assignments, deprecated and unallocated space.
    case reserved
}

extension IPAddress {
    /// The address's scope; `nil` if it is global, which is reachable on the Internet. An IPv6
    /// address that embeds an IPv4 one (``embeddedV4``) has the IPv4 address's scope, since that is
    /// where its traffic ends up.
    public var scope: AddressScope? {
        switch self {
        case .v4(let value):
            return scopeV4(value)
        case .v6(let high, let low):
            if case .v4(let value) = embeddedV4 { return scopeV4(value) }
            return scopeV6(high, low)
        }
    }
}

/// The addresses at which clouds hand out credentials. 169.254.169.254: AWS, Azure, Google, Oracle,
/// DigitalOcean, OpenStack; 169.254.170.2 and .23: ECS tasks, EKS pods; 169.254.0.23: Tencent;
/// 169.254.42.42: Scaleway; 100.100.100.200: Alibaba; 192.0.0.192: Oracle Classic; 168.63.129.16:
/// Azure's host.
private func isMetadataV4(_ value: UInt32) -> Bool {
    switch value {
    case 0xa9fe_a9fe, 0xa9fe_aa02, 0xa9fe_aa17, 0xa9fe_0017, 0xa9fe_2a2a, 0x6464_64c8,
        0xc000_00c0, 0xa83f_8110:
        true
    default: false
    }
}

/// fd00:ec2::254 and ::23: AWS, EKS pods; fd20:ce::254: Google; fd00:42::42: Scaleway.
private func isMetadataV6(_ high: UInt64, _ low: UInt64) -> Bool {
    switch (high, low) {
    case (0xfd00_0ec2_0000_0000, 0x254), (0xfd00_0ec2_0000_0000, 0x23),
        (0xfd20_00ce_0000_0000, 0x254), (0xfd00_0042_0000_0000, 0x42):
        true
    default: false
    }
}

private func scopeV4(_ value: UInt32) -> AddressScope? {
    if isMetadataV4(value) { return .metadata }
    switch value {
    case 0xffff_ffff: return .broadcast
    case 0xf000_0000...: return .reserved  // 240.0.0.0/4
    case 0xe000_0000...: return .multicast  // 224.0.0.0/4
    // 192.0.0.9 and .10: PCP and TURN anycast, the global part of 192.0.0.0/24.
    case 0xc000_0009, 0xc000_000a: return nil
    default: break
    }
    switch value >> 24 {
    case 0: return .unspecified
    case 10: return .private
    case 127: return .loopback
    default: break
    }
    switch value >> 16 {
    case 0x6440...0x647f: return .shared  // 100.64.0.0/10
    case 0xa9fe: return .linkLocal  // 169.254.0.0/16
    case 0xac10...0xac1f: return .private  // 172.16.0.0/12
    case 0xc0a8: return .private  // 192.168.0.0/16
    case 0xc612, 0xc613: return .reserved  // 198.18.0.0/15, benchmarking
    default: break
    }
    switch value >> 8 {
    case 0xc0_0000,  // 192.0.0.0/24, protocol assignments
        0xc0_0002, 0xc6_3364, 0xcb_0071,  // TEST-NET-1, -2 and -3
        0xc0_5863:  // 192.88.99.0/24, 6to4 relays, deprecated
        return .reserved
    default: return nil
    }
}

private func scopeV6(_ high: UInt64, _ low: UInt64) -> AddressScope? {
    if high == 0, low == 0 { return .unspecified }
    if high == 0, low == 1 { return .loopback }
    if isMetadataV6(high, low) { return .metadata }
    let first = UInt16(truncatingIfNeeded: high >> 48)
    switch first {
    case 0xff00...0xffff: return .multicast
    case 0xfec0...0xfeff: return .private
    case 0xfe80...0xfebf: return .linkLocal
    case 0xfc00...0xfdff: return .private
    // Only 2000::/3 is allocated as global unicast; everything else, including 64:ff9b:1::/48,
    // 100::/64 and 5f00::/16, is not.
    case 0x2000...0x3fff: break
    default: return .reserved
    }
    let firstTwo = UInt32(truncatingIfNeeded: high >> 32)
    if firstTwo == 0x2001_0db8 { return .reserved }  // documentation
    if first == 0x3fff, high >> 44 & 0xf == 0 { return .reserved }  // 3fff::/20, documentation
    if firstTwo >> 9 == 0x2001_0000 >> 9 { return scopeProtocolAssignment(high, low) }
    return nil
}

/// `2001::/23`, IETF protocol assignments: not global unless a more specific entry says so.
private func scopeProtocolAssignment(_ high: UInt64, _ low: UInt64) -> AddressScope? {
    // 2001:1::1, ::2 and ::3: PCP, TURN and DNS-SD anycast.
    if high == 0x2001_0001_0000_0000, (1...3).contains(low) { return nil }
    if high >> 32 == 0x2001_0003 { return nil }  // AMT
    if high >> 16 == 0x2001_0004_0112 { return nil }  // AS112-v6
    switch high >> 36 {
    case 0x2001_002, 0x2001_003: return nil  // ORCHIDv2 2001:20::/28, DETs 2001:30::/28
    default: return .reserved  // Teredo, benchmarking and the unassigned
    }
}
