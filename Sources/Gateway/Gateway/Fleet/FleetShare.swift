/// Which gateways take a policy first, if only a share is to take it: by a hash of their names, so
/// that they are always the same ones, and a larger share contains every smaller one.
enum FleetShare {
    /// From which share on, in hundredths, a gateway takes a policy: 1 to 100.
    static func least(for name: some Sequence<UInt8>) -> Int {
        // FNV-1a, and then the last step of MurmurHash3: names that only differ in their last
        // digit are to be far apart. Nobody gains anything by choosing a name.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in name { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash = (hash ^ hash >> 33) &* 0xff51_afd7_ed55_8ccd
        hash = (hash ^ hash >> 33) &* 0xc4ce_b9fe_1a85_ec53
        return Int((hash ^ hash >> 33) % 100) + 1
    }

    /// Whether a gateway is among those that take a policy.
    static func has(_ name: some Sequence<UInt8>, within percent: Int) -> Bool {
        least(for: name) <= percent
    }

    /// Reads `10`, `10%` or `100 %`; `nil` for what is no share from 1 to 100.
    static func percent(_ text: some StringProtocol) -> Int? {
        var digits = Substring(text)
        if digits.last == "%" { digits.removeLast() }
        while digits.last == " " { digits.removeLast() }
        guard digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let percent = Int(digits),
            1...100 ~= percent
        else { return nil }
        return percent
    }
}
