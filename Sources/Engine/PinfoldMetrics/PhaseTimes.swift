/// What an exchange spends its time on, from its request's complete head to its response's last
/// byte. What is in none of them is the time of the gateway itself.
public enum Phase: UInt8, Sendable, CaseIterable {
    /// Waiting in the gateway: for a place in the pool, the turn by a rule, a password's check, the
    /// disk, another request's response, the request's content where it is collected first, or a
    /// translation.
    case queue
    /// Resolving the server's name.
    case dns
    /// Connecting, to all addresses that were tried, with what a parent proxy takes for a tunnel.
    case connect
    /// The TLS handshake with the server, with the verdict on it.
    case tls
    /// From the request's head sent to the final head received.
    case firstByte
    /// From there to the last byte for the client; of a tunnel, as long as it is open.
    case body

    /// The name in logs, metrics and commands.
    public var label: StaticString {
        switch self {
        case .queue: "queue"
        case .dns: "dns"
        case .connect: "connect"
        case .tls: "tls"
        case .firstByte: "first_byte"
        case .body: "body"
        }
    }
}

/// How long the phases of an exchange took, in microseconds. A phase that did not happen has no
/// time, not one of 0. What several attempts took is added up.
public struct PhaseTimes: Sendable, Hashable {
    @usableFromInline var queue: UInt64 = 0
    @usableFromInline var dns: UInt64 = 0
    @usableFromInline var connect: UInt64 = 0
    @usableFromInline var tls: UInt64 = 0
    @usableFromInline var firstByte: UInt64 = 0
    @usableFromInline var body: UInt64 = 0
    /// A bit for each phase that happened.
    @usableFromInline var happened: UInt8 = 0

    /// No phase.
    @inlinable
    public init() {}

    /// Whether any phase but the body happened.
    @inlinable @inline(__always)
    public var haveWaits: Bool { happened & ~Self.bit(.body) != 0 }

    /// What the phases took together.
    public var sum: UInt64 { queue &+ dns &+ connect &+ tls &+ firstByte &+ body }

    /// What a phase took; `nil` if it did not happen.
    @inline(__always)
    public subscript(phase: Phase) -> UInt64? {
        guard happened & Self.bit(phase) != 0 else { return nil }
        return switch phase {
        case .queue: queue
        case .dns: dns
        case .connect: connect
        case .tls: tls
        case .firstByte: firstByte
        case .body: body
        }
    }

    /// A phase took this long, or this much longer.
    @inlinable @inline(__always)
    public mutating func add(_ phase: Phase, _ microseconds: UInt64) {
        happened |= Self.bit(phase)
        switch phase {
        case .queue: queue &+= microseconds
        case .dns: dns &+= microseconds
        case .connect: connect &+= microseconds
        case .tls: tls &+= microseconds
        case .firstByte: firstByte &+= microseconds
        case .body: body &+= microseconds
        }
    }

    /// The same for what all phases of an attempt, or of a part of the exchange, took.
    public mutating func add(_ other: PhaseTimes) {
        for phase in Phase.allCases {
            if let microseconds = other[phase] { add(phase, microseconds) }
        }
    }

    @inlinable @inline(__always)
    static func bit(_ phase: Phase) -> UInt8 { 1 << phase.rawValue }
}
