/// Why a request is sent another time.
enum RetryReason: Int, CaseIterable {
    /// The connection had carried requests before and ended before a byte of the answer: the
    /// server closed it just as it was used (RFC 9112 §9.3.1).
    case connectionDied
    /// A reload gave the origin another policy while a connection to it was waited for.
    case superseded
    /// The answer to the conditions is of no use, for instance a 304 for what cannot be read any
    /// more (RFC 9111 §4.3.3).
    case validationFailed
    /// What was stored of the body cannot be read, and nothing of it has reached the client.
    case storedBodyUnreadable
}

/// The reasons for which a request has been sent another time.
struct RetryReasons: OptionSet {
    let rawValue: Int

    init(rawValue: Int) { self.rawValue = rawValue }
    init(_ reason: RetryReason) { rawValue = 1 << reason.rawValue }

    func contains(_ reason: RetryReason) -> Bool { contains(Self(reason)) }
    mutating func insert(_ reason: RetryReason) { formUnion(Self(reason)) }
}

/// Whether a request is sent another time: one decision for every way in which an attempt can end
/// without a response for the client.
///
/// It is asked only while nothing of a response has reached the client (``ExchangeState``). A
/// request goes out again only if all of its content can go out again, and once for each reason;
/// for a reload, once for each reload.
/// Only after a connection's death the server may have acted on the request: then it must be
/// idempotent (RFC 9110 §9.2.2).
struct RetryDecision {
    /// How an attempt ended.
    enum Ending: Equatable {
        /// The connection ended before the response was complete.
        case connectionDied(wasReused: Bool, responseStarted: Bool)
        /// There was no connection yet when the origin got another policy.
        case superseded
        /// The origin's answer says nothing about what is stored.
        case validationFailed
        /// What is stored cannot be read.
        case storedBodyUnreadable
    }

    /// How much of the request's content has been taken from the client.
    enum Content: Equatable {
        /// The request has none.
        case none
        /// All of it is still to come.
        case untouched
        /// Some of it has been sent, and what it was is not known any more.
        case partlySent
        /// It has ended.
        case ended(isKept: Bool)

        /// It can go out in full.
        var isAvailable: Bool {
            switch self {
            case .none, .untouched: true
            case .partlySent: false
            case .ended(let isKept): isKept
            }
        }
    }

    var isIdempotent: Bool
    package var content: Content
    /// Why it has been sent another time already.
    var reasons: RetryReasons

    /// The reason to send the request another time; nil: it is not.
    func reason(after ending: Ending) -> RetryReason? {
        guard content.isAvailable else { return nil }
        let reason: RetryReason
        switch ending {
        case .connectionDied(let wasReused, let responseStarted):
            guard wasReused, !responseStarted, isIdempotent else { return nil }
            reason = .connectionDied
        case .superseded: return .superseded
        case .validationFailed: reason = .validationFailed
        case .storedBodyUnreadable: reason = .storedBodyUnreadable
        }
        return reasons.contains(reason) ? nil : reason
    }

    /// Whether an attempt needs a connection that nobody has used before: the idle ones may all
    /// have died with the one that did.
    static func needsFreshConnection(_ reasons: RetryReasons) -> Bool {
        reasons.contains(.connectionDied)
    }
}
