import HTTPCore
import PinfoldConfiguration

/// What a configuration says about traces, as plain values for the hot path.
package struct TraceSettings: Sendable, Equatable {
    /// What servers are told.
    let propagation: TracingConfiguration.Propagation
    /// Whether spans are sent to a collector.
    package let exportsSpans: Bool
    private let threshold: UInt64

    /// The numbers of traces end in 56 random bits, of which samplers make the decision (W3C Trace
    /// Context, level 2, §5.1.2): all that use the same share choose the same traces.
    private static let randomBits: UInt64 = 1 << 56

    /// The settings of a configuration.
    package init(_ configuration: TracingConfiguration) {
        propagation = configuration.traceparent
        exportsSpans = configuration.otlp != nil
        let rest = UInt64(TracingConfiguration.whole - configuration.sampleMillionths)
        let (high, low) = Self.randomBits.multipliedFullWidth(by: rest)
        threshold =
            UInt64(TracingConfiguration.whole).dividingFullWidth((high, low)).quotient
    }

    /// Whether requests have other fields than the client's.
    @inline(__always)
    var changesRequests: Bool { propagation != .pass }

    /// Whether a trace that begins here is sampled.
    package func samples(_ trace: TraceID) -> Bool {
        trace.low & (Self.randomBits - 1) >= threshold
    }
}

/// Random numbers for traces and spans: xoshiro256**, seeded by the system. They need be unique,
/// not secret, and a system call for each would cost more than the rest of a span.
package struct TraceNumbers {
    private var state: (UInt64, UInt64, UInt64, UInt64)

    /// What takes the place of a seed of zeros, from which nothing but zeros would come.
    private static let ownSeed: (UInt64, UInt64, UInt64, UInt64) = (
        0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0x2545_f491_4f6c_dd1d
    )

    package init(seed: (UInt64, UInt64, UInt64, UInt64)) {
        state = seed.0 | seed.1 | seed.2 | seed.3 == 0 ? Self.ownSeed : seed
    }

    /// Numbers that no other process has.
    package init() {
        var system = SystemRandomNumberGenerator()
        self.init(seed: (system.next(), system.next(), system.next(), system.next()))
    }

    /// The number of another trace.
    package mutating func trace() -> TraceID { TraceID(high: next(), low: span()) }

    /// The number of another span: not 0.
    package mutating func span() -> UInt64 {
        while true {
            let number = next()
            if number != 0 { return number }
        }
    }

    private mutating func next() -> UInt64 {
        let result = Self.rotated(state.1 &* 5, by: 7) &* 9
        let shifted = state.1 << 17
        state.2 ^= state.0
        state.3 ^= state.1
        state.1 ^= state.2
        state.0 ^= state.3
        state.2 ^= shifted
        state.3 = Self.rotated(state.3, by: 45)
        return result
    }

    private static func rotated(_ number: UInt64, by bits: UInt64) -> UInt64 {
        number << bits | number >> (64 - bits)
    }
}
