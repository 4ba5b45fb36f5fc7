import PinfoldConfiguration

private let day: Int64 = 86_400_000

/// `activity`.
extension ActivityConfiguration {
    static var table: KeyTable<Self> {
        let range: ClosedRange<Int64> = 0...3_600_000
        return KeyTable(keys: [
            .milliseconds("activationDelay", \.activationDelayMilliseconds, in: range),
            .milliseconds("completionDelay", \.completionDelayMilliseconds, in: range),
        ])
    }
}

/// `limits`.
extension LimitsConfiguration {
    /// The least memory for requests that are not complete.
    static let leastBuffers = 1 << 20

    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .integer("connections", \.connections, in: 1...1_000_000),
            .bytes("headBytes", \.headBytes, in: 1 << 10...1 << 20),
            .integer("fields", \.fields, in: 1...10_000),
            .integer("upstreamPerHost", \.upstreamPerHost, in: 1...65_535),
            .integer("pending", \.pending, in: 0...1_000_000),
            ConfigurationKey(
                "bufferBytes", \.bufferBytes, byDefault: "auto",
                reading: { reader, field in field.bytesOrAutomatic(in: leastBuffers...1 << 50) },
                text: Quantity.text(bytes:)),
            .integer("streams", \.streams, in: 1...10_000),
            .integer("upstreamStreams", \.upstreamStreams, in: 1...10_000),
            .integer("resets", \.resets, in: 10...100_000),
            ConfigurationKey("perClient", \.perClient, table: ClientLimits.table) {
                ClientLimits(ofConnections: $0.connections)
            },
        ])
    }
}

extension SnapshotReader {
    /// Reads `limits`, and warns of numbers that exceed what the system allows.
    func limits(_ field: Field?) -> LimitsConfiguration {
        var defaults = LimitsConfiguration()
        defaults.bufferBytes = automaticBytes(most: defaults.bufferBytes)
        let (limits, section) = read(field, by: LimitsConfiguration.table, over: defaults)
        guard let openFiles = validation.environment.openFiles else { return limits }
        let perClient = section?["perClient"]?.key("connections")
        for (key, needed, whose) in [
            (section?["connections"], 2 * limits.connections, " and as many to servers"),
            (section?["upstreamPerHost"], limits.upstreamPerHost, ""),
            (perClient, limits.perClient.connections, ""),
        ] where needed > openFiles {
            key?.warn(
                "this many connections\(whose) need \(needed) open files, but the system allows "
                    + "\(openFiles) (RLIMIT_NOFILE): raise that limit (LimitNOFILE=, ulimit -n) "
                    + "or lower this value")
        }
        return limits
    }
}

/// `limits.perClient`.
extension ClientLimits {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .integer(
                "connections", \.connections, in: 1...1_000_000,
                byDefault: "three quarters of connections, at least 256"),
            .integer(
                "exchanges", \.exchanges, in: 1...1_000_000,
                byDefault: "half of connections, at least 256"),
        ])
    }

    /// The default limits per client: three quarters of all connections, and half as many
    /// exchanges as connections. They are generous because many users may share an address. Small
    /// limits are not divided.
    init(ofConnections connections: Int) {
        let least = 256
        self.init(
            connections: max(least, connections / 4 * 3), exchanges: max(least, connections / 2))
    }
}

/// `timeouts`.
extension TimeoutsConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .milliseconds("head", \.headMilliseconds, in: 1...day),
            .milliseconds("idle", \.idleMilliseconds, in: 1...day),
            .milliseconds("connect", \.connectMilliseconds, in: 1...day),
            .milliseconds("firstByte", \.firstByteMilliseconds, in: 1...day),
            .milliseconds("body", \.bodyMilliseconds, in: 1...day),
            .milliseconds("tunnel", \.tunnelMilliseconds, in: 1...day),
            .milliseconds("eventStream", \.eventStreamMilliseconds, in: 1...day),
            .milliseconds("collapse", \.collapseMilliseconds, in: 0...day),
            .milliseconds("drainDelay", \.drainDelayMilliseconds, in: 0...day),
            .milliseconds("grace", \.graceMilliseconds, in: 0...day),
        ])
    }
}

/// `timeouts` of an entry of `hosts`.
extension HostTimeouts {
    static let range = 1...day

    static var table: KeyTable<Self> {
        func time(
            _ name: String, _ place: WritableKeyPath<Self, Int64?>
        ) -> ConfigurationKey<Self> {
            .milliseconds(name, place, in: range, byDefault: "from timeouts")
        }
        return KeyTable(keys: [
            time("connect", \.connectMilliseconds),
            time("firstByte", \.firstByteMilliseconds),
            time("body", \.bodyMilliseconds),
            time("tunnel", \.tunnelMilliseconds),
            time("eventStream", \.eventStreamMilliseconds),
        ])
    }
}
