/// An error that a server replies: its code, which is the first word, as far as it matters here,
/// and its text.
package struct RedisReplyError: Error, Sendable, Hashable, CustomStringConvertible {
    package let code: RedisErrorCode
    /// All of it, code included, at most ``maximumTextBytes``, without control characters.
    package let text: String

    /// The bytes of a text that are kept.
    package static let maximumTextBytes = 200

    /// Reads the text of an error reply.
    package init(_ reply: [UInt8]) {
        code = RedisErrorCode(reply)
        let shown = reply.prefix(Self.maximumTextBytes).map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }
        text = String(decoding: shown, as: UTF8.self)
    }

    package var description: String { "the server replied: \(text)" }
}

/// The codes of errors.
package enum RedisErrorCode: Sendable, Hashable {
    /// The slot is another node's, from now on.
    case moved(ClusterRedirection)
    /// The key may be on another node, which has to be asked with ASKING, this time only.
    case ask(ClusterRedirection)
    /// Keys of one command are on two nodes while their slot moves.
    case tryAgain
    /// The cluster has lost nodes.
    case clusterDown
    /// Keys of one command are in different slots.
    case crossSlot
    /// It reads its data set, after a start.
    case loading
    /// A script blocks it.
    case busy
    /// It is a replica that has lost its master, and does not answer with old data.
    case masterDown
    /// It is a replica: nothing is written to it.
    case readOnly
    /// `maxmemory` is reached, and nothing may be evicted.
    case outOfMemory
    /// It cannot write its data set to disk, and accepts no writes.
    case notPersisting
    /// Too few replicas follow it.
    case noReplicas
    case noAuthentication
    case wrongPassword
    /// The user may not do that.
    case noPermission
    /// The version of the protocol is not supported.
    case noProtocol
    case unknownCommand
    /// The script is not in its cache.
    case noScript
    /// The key has a value of another type.
    case wrongType
    /// Any other.
    case other

    /// Reads the text of an error reply.
    package init(_ reply: [UInt8]) {
        let words = reply.split(separator: UInt8(ascii: " "), maxSplits: 1)
        let rest = words.count > 1 ? words[1] : []
        switch words.first.map({ String(decoding: $0, as: UTF8.self) }) {
        case "MOVED": self = ClusterRedirection(rest).map { .moved($0) } ?? .other
        case "ASK": self = ClusterRedirection(rest).map { .ask($0) } ?? .other
        case "TRYAGAIN": self = .tryAgain
        case "CLUSTERDOWN": self = .clusterDown
        case "CROSSSLOT": self = .crossSlot
        case "LOADING": self = .loading
        case "BUSY": self = .busy
        case "MASTERDOWN": self = .masterDown
        case "READONLY": self = .readOnly
        case "OOM": self = .outOfMemory
        case "MISCONF": self = .notPersisting
        case "NOREPLICAS": self = .noReplicas
        case "NOAUTH": self = .noAuthentication
        case "WRONGPASS": self = .wrongPassword
        case "NOPERM": self = .noPermission
        case "NOPROTO": self = .noProtocol
        case "NOSCRIPT": self = .noScript
        case "WRONGTYPE": self = .wrongType
        case "ERR":
            if rest.starts(with: "unknown command".utf8) {
                self = .unknownCommand
            } else if rest.starts(with: "invalid password".utf8) {
                // What versions before 6 reply to AUTH.
                self = .wrongPassword
            } else {
                self = .other
            }
        default: self = .other
        }
    }

    /// What follows from it for whoever sent the command, besides that it was not carried out.
    package var consequence: RedisErrorConsequence {
        switch self {
        case .moved, .ask: .redirects
        case .tryAgain, .clusterDown, .loading, .busy: .isPassing
        case .masterDown, .readOnly: .isWrongServer
        case .outOfMemory, .notPersisting, .noReplicas: .refusesWrites
        case .noAuthentication, .wrongPassword, .noPermission, .noProtocol, .unknownCommand:
            .isMisconfigured
        case .noScript: .needsScript
        case .wrongType, .crossSlot, .other: .isUnexpected
        }
    }
}

/// What follows from an error.
package enum RedisErrorConsequence: Sendable, Hashable {
    /// Another node is to be asked.
    case redirects
    /// It cannot answer at present, which counts as a failure (`CircuitBreaker`).
    case isPassing
    /// Another server is the master: it has to be found again.
    case isWrongServer
    /// It answers, but stores nothing: stores are given up, lookups go on.
    case refusesWrites
    /// Somebody has to change its configuration or ours.
    case isMisconfigured
    /// The script has to be sent whole.
    case needsScript
    /// The key is another program's, or the program is wrong.
    case isUnexpected
}
