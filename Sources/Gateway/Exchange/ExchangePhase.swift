/// Where an exchange is.
///
///     routing ──► loading ──► waiting ──► gathering ──► connecting ──► forwarding ──► ended
///        │           │           │            │             │              │            ▲
///        │           ▼           ▼            ▼             ▼              ▼            │
///        ├─► serving (from the cache: a hit, what was validated, a stale response) ─────┤
///        ├─► replying (with an answer of the gateway's own) ────────────────────────────┤
///        └─► tunnelling (the relay takes over) ─────────────────────────────────────────┘
///
/// The picture leaves out the ways back; ``successors`` has them all, and what is not there is a
/// fault of the program (``Exchange/become(_:)``).
enum ExchangePhase: UInt8, CaseIterable {
    /// It is none, or none any more.
    case ended
    case routing
    /// The disk tier is asked.
    case loading
    /// The response to another exchange's request is waited for.
    case waiting
    /// The request's content is taken in before a connection is asked for.
    case gathering
    /// A connection is waited for.
    case connecting
    case forwarding
    /// A stored response is being sent.
    case serving
    /// A reply of the gateway's own is being sent.
    case replying
    /// The connection to a tunnel's destination is waited for, or the relay takes over.
    case tunnelling

    /// The phases that may follow.
    var successors: ExchangePhases {
        switch self {
        case .ended: [.routing]
        case .routing:
            [
                .loading, .waiting, .gathering, .connecting, .serving, .replying, .tunnelling,
                .ended,
            ]
        // The disk's answer is judged like memory's.
        case .loading: [.routing, .ended]
        // It looks again, or goes alone.
        case .waiting: [.routing, .ended]
        case .gathering: [.gathering, .connecting, .serving, .replying, .ended]
        // A reload sends it back to the start of the way upstream.
        case .connecting: [.connecting, .gathering, .forwarding, .serving, .replying, .ended]
        // Connecting: it is sent another time. Tunnelling: the server switched protocols.
        case .forwarding:
            [.forwarding, .connecting, .serving, .replying, .tunnelling, .ended]
        // Routing: what is stored cannot be read, and the origin is asked.
        case .serving: [.routing, .replying, .ended]
        // The request's content fails while a reply waits to be written: another takes its place.
        case .replying: [.replying, .ended]
        // First the connection is waited for, then the relay takes over.
        case .tunnelling: [.tunnelling, .replying, .ended]
        }
    }
}

/// A set of phases.
struct ExchangePhases: OptionSet {
    let rawValue: UInt16

    init(rawValue: UInt16) { self.rawValue = rawValue }
    init(_ phase: ExchangePhase) { rawValue = 1 << UInt16(phase.rawValue) }

    static let ended = Self(.ended)
    static let routing = Self(.routing)
    static let loading = Self(.loading)
    static let waiting = Self(.waiting)
    static let gathering = Self(.gathering)
    static let connecting = Self(.connecting)
    static let forwarding = Self(.forwarding)
    static let serving = Self(.serving)
    static let replying = Self(.replying)
    static let tunnelling = Self(.tunnelling)

    @inline(__always)
    func contains(_ phase: ExchangePhase) -> Bool { contains(Self(phase)) }
}

extension Exchange {
    /// Goes over to another phase. One that may not follow is a fault of the program: it traps
    /// while it is being developed; else it is logged and counted, and the exchange ends at the
    /// end of the turn, cut off, with no harm to others.
    @inline(__always)
    func become(_ next: ExchangePhase) {
        if !phase.successors.contains(next) { becameIllegally(next) }
        phase = next
    }

    @inline(never)
    private func becameIllegally(_ next: ExchangePhase) {
        worker.metrics.add(.illegalTransitions)
        worker.shared.logger.critical(
            "an exchange's phase may not follow on its last; please report this",
            metadata: ["id": "\(idText)", "from": "\(phase)", "to": "\(next)"])
        assertionFailure("\(phase) -> \(next)")
        let id = id
        worker.loop.afterTurn { [self] in
            if self.id == id { finish(cut: true) }
        }
    }
}
