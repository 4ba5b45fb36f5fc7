/// Why a request is sent again.
package enum RetryReason: Int, CaseIterable {
    /// The connection had carried requests before and ended before a byte of the response: the
    /// server closed it just as it was used (RFC 9112 §9.3.1).
    case connectionDied
    /// The server has refused the request's stream without processing it (RFC 9113 §8.7).
    case notProcessed
    /// A reload gave the origin another policy while the exchange waited for a connection to it.
    case superseded
    /// The response to the conditional request cannot be used, for instance a 304 for a stored
    /// response that can no longer be read (RFC 9111 §4.3.3).
    case validationFailed
    /// The stored body cannot be read, and nothing of it has reached the client.
    case storedBodyUnreadable
    /// One of several servers has failed, and another is asked.
    case otherServer
}

/// The reasons for which a request has been sent again, as often as each of them allows.
package struct RetryReasons: Equatable, ExpressibleByArrayLiteral {
    /// How often a request that was not processed is sent again: servers that are being replaced
    /// may refuse it one after the other, and none of them has done anything (RFC 9113 §8.7).
    static let notProcessedLimit: UInt8 = 3
    /// The most servers that a request is sent to in place of others; the configuration has a limit
    /// of its own (`upstreams.retries`).
    static let otherServerLimit: UInt8 = 10

    /// A bit for each reason.
    private var seen: UInt8 = 0
    private var notProcessed: UInt8 = 0
    private var otherServer: UInt8 = 0

    package init() {}
    init(_ reason: RetryReason) { insert(reason) }
    package init(arrayLiteral reasons: RetryReason...) { for reason in reasons { insert(reason) } }

    /// Whether the request has been sent again for this reason as often as it may be.
    func contains(_ reason: RetryReason) -> Bool {
        switch reason {
        case .notProcessed: return notProcessed >= Self.notProcessedLimit
        case .otherServer: return otherServer >= Self.otherServerLimit
        case .connectionDied, .superseded, .validationFailed, .storedBodyUnreadable: break
        }
        return seen & 1 << reason.rawValue != 0
    }

    package mutating func insert(_ reason: RetryReason) {
        seen |= 1 << reason.rawValue
        if reason == .notProcessed, notProcessed < Self.notProcessedLimit { notProcessed += 1 }
        if reason == .otherServer, otherServer < Self.otherServerLimit { otherServer += 1 }
    }
}

/// Decides whether a request is sent again, for every way in which an attempt can end without a
/// response for the client.
///
/// It is used only while nothing of a response has reached the client (``ExchangeState``). A
/// request is sent again only if all of its content can be sent again, and once for each reason
/// (for a reload, once for each reload; if it was not processed, three times; to other servers of
/// a route, as often as the configuration says). Only after the death
/// of a connection, or if one of several servers fails otherwise after it was sent, may the server
/// have acted on the request: then the request must be idempotent
/// (RFC 9110 §9.2.2).
package struct RetryDecision {
    /// How an attempt ended.
    package enum Ending: Equatable, CaseIterable {
        /// The connection ended before the response was complete.
        case connectionDied(responseStarted: Bool)
        /// The server broke the rules of HTTP/2, so that HTTP/1 is spoken with it next.
        case protocolFailed(responseStarted: Bool)
        /// The server has said that it did nothing with the request.
        case notProcessed
        /// The origin got another policy before there was a connection.
        case superseded
        /// The origin's response says nothing about the stored response.
        case validationFailed
        /// The stored response cannot be read.
        case storedBodyUnreadable
        /// One of several servers failed, and there is another that may be asked. `wasSent`: it may
        /// have acted on the request.
        case serverFailed(wasSent: Bool, responseStarted: Bool)

        package static var allCases: [Ending] {
            [
                .connectionDied(responseStarted: false), .connectionDied(responseStarted: true),
                .protocolFailed(responseStarted: false), .protocolFailed(responseStarted: true),
                .notProcessed, .superseded, .validationFailed, .storedBodyUnreadable,
                .serverFailed(wasSent: false, responseStarted: false),
                .serverFailed(wasSent: true, responseStarted: false),
                .serverFailed(wasSent: true, responseStarted: true),
            ]
        }
    }

    /// How much of the request's content has been accepted from the client.
    package enum Content: Equatable {
        /// The request has no content.
        case none
        /// None has been accepted yet.
        case untouched
        /// Some of it has been sent and was not kept.
        case partlySent
        /// It is complete.
        case ended(isKept: Bool)

        /// Whether all of it can be sent.
        var isAvailable: Bool {
            switch self {
            case .none, .untouched: true
            case .partlySent: false
            case .ended(let isKept): isKept
            }
        }
    }

    var isIdempotent: Bool
    /// Whether the connection had carried requests before.
    var wasReused: Bool
    package var content: Content
    /// The reasons for which it has already been sent again.
    var reasons: RetryReasons

    package init(
        isIdempotent: Bool, wasReused: Bool, content: Content, reasons: RetryReasons
    ) {
        self.isIdempotent = isIdempotent
        self.wasReused = wasReused
        self.content = content
        self.reasons = reasons
    }

    /// The reason to send the request again; `nil` if it is not sent again.
    package func reason(after ending: Ending) -> RetryReason? {
        guard content.isAvailable else { return nil }
        let reason: RetryReason
        switch ending {
        case .connectionDied(let responseStarted):
            guard wasReused, !responseStarted, isIdempotent else { return nil }
            reason = .connectionDied
        case .protocolFailed(let responseStarted):
            guard !responseStarted, isIdempotent else { return nil }
            reason = .connectionDied
        case .notProcessed: reason = .notProcessed
        case .superseded: return .superseded
        case .validationFailed: reason = .validationFailed
        case .storedBodyUnreadable: reason = .storedBodyUnreadable
        case .serverFailed(let wasSent, let responseStarted):
            guard !responseStarted, isIdempotent || !wasSent else { return nil }
            reason = .otherServer
        }
        return reasons.contains(reason) ? nil : reason
    }

    /// Whether an attempt needs a connection that has not been used before: all idle ones may have
    /// died together with the one that did.
    package static func needsFreshConnection(_ reasons: RetryReasons) -> Bool {
        reasons.contains(.connectionDied)
    }
}
