import Synchronization

/// What happens to something that has a name in the configuration, such as a rule: a few kinds of
/// events, numbered from 0.
public protocol CountedEvent: RawRepresentable, CaseIterable, Sendable where RawValue == Int {}

/// How often each kind of event has happened to one of those, on all threads, or how much of it.
///
/// All threads share the counts: there is one addition for an exchange or a handshake, which is not
/// often enough to need cells for each thread (``CounterCells``).
public final class EventCounts<Event: CountedEvent>: Sendable {
    /// The most kinds of events.
    @usableFromInline static var limit: Int { 8 }

    @usableFromInline let cells = InlineArray<8, Atomic<UInt64>> { _ in Atomic(0) }

    public init() { precondition(Event.allCases.count <= Self.limit) }

    /// Adds to a count, wrapping.
    @inlinable
    public func add(_ amount: UInt64 = 1, to event: Event) {
        cells[event.rawValue].wrappingAdd(amount, ordering: .relaxed)
    }

    /// A count.
    public subscript(event: Event) -> UInt64 {
        cells[event.rawValue].load(ordering: .relaxed)
    }
}

/// What happens to a rule of `access.rules`.
public enum RuleEvent: Int, CountedEvent {
    /// A request has matched it.
    case matched
    /// A request exceeded its rate and was refused, or would have been if it did not only report.
    case refused
    /// The same, and the request had to wait for its turn.
    case delayed
    /// The same, and its bytes had to wait.
    case paced

    /// What the rate of a rule does.
    public static let ofRates: [RuleEvent] = [.refused, .delayed, .paced]
}

/// What happens to a pin.
public enum PinEvent: Int, CountedEvent {
    /// It has matched in the chain of a server.
    case matched
}

/// What those do who have proved that they are members of a group.
public enum GroupEvent: Int, CountedEvent {
    /// An exchange has ended.
    case exchanges
    /// Bytes of content, or of a tunnel, that they have sent.
    case bytesReceived
    /// The same that they have been sent.
    case bytesSent
}

/// What happens at a parent.
public enum ParentEvent: Int, CountedEvent {
    /// A connection to it, or a tunnel through it, has been established.
    case connections
    /// A request has been sent through it, or a tunnel has been opened.
    case requests
}

/// Why a request could not be sent through a parent, or it was found to be down.
public enum ParentFailureReason: Int, CountedEvent {
    case unreachable, tls, timeout, refused, authentication, badResponse, nameUnchecked, probe

    /// The value of its label.
    public var label: String {
        switch self {
        case .unreachable: "unreachable"
        case .tls: "tls"
        case .timeout: "timeout"
        case .refused: "refused"
        case .authentication: "authentication"
        case .badResponse: "bad-response"
        case .nameUnchecked: "name-unchecked"
        case .probe: "probe"
        }
    }
}

/// The counts of what a configuration names. A name keeps them over reloads; those that are no
/// longer in force are forgotten, so that a table has no more than the configuration has names.
public struct CounterTable<Event: CountedEvent>: Sendable {
    private var counts: [String: EventCounts<Event>] = [:]
    private var names: [String] = []

    public init() {}

    /// The counts of a configuration's names, known or new. It need not come into force.
    public mutating func counts(for names: [String]) -> [EventCounts<Event>] {
        names.map { name in
            if let known = counts[name] { return known }
            let made = EventCounts<Event>()
            counts[name] = made
            return made
        }
    }

    /// A configuration with these names has come into force.
    public mutating func activate(_ names: [String]) {
        let inForce = Set(names)
        counts = counts.filter { inForce.contains($0.key) }
        self.names = inForce.sorted()
    }

    /// The names in force that have counts, sorted.
    public var inForce: [(name: String, counts: EventCounts<Event>)] {
        names.compactMap { name in counts[name].map { (name, $0) } }
    }
}
