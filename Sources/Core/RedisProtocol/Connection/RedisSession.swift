/// What a connection is to be before commands are sent on it.
package struct RedisSession: Sendable, Hashable {
    /// The user (Redis 6); `nil` for the default one.
    package var user: [UInt8]?
    /// `nil` for none.
    package var password: [UInt8]?
    package var database = 0
    /// What the server calls it in `CLIENT LIST`; without spaces. Empty for none.
    package var clientName: [UInt8] = []
    /// Whether a replica will not do.
    package var needsMaster = true

    /// A session of the default user.
    package init() {}
}

/// What a server has said of itself.
package struct RedisServer: Sendable, Hashable {
    /// 2 or 3: whether there are push messages.
    package var protocolVersion: Int64 = 2
    /// `redis`, `valkey`; empty if it does not say.
    package var product = ""
    package var version = ""
    /// `nil` if it does not say.
    package var role: RedisRole?
    /// Whether it is a node of a cluster.
    package var isClustered = false

    /// A server of which nothing is known.
    package init() {}
}

/// Why a connection could not be made ready.
package enum RedisHandshakeError: Error, Sendable, Hashable, CustomStringConvertible {
    case passwordRequired
    case wrongPassword
    /// The user may not send a command that is needed.
    case notPermitted(RedisHandshake.Step, RedisReplyError)
    case isReplica
    case isSentinel
    /// It cannot answer yet.
    case unavailable(RedisReplyError)
    case refused(RedisHandshake.Step, RedisReplyError)
    /// It does not reply to the command what a server does.
    case unexpectedReply(RedisHandshake.Step)

    package var description: String {
        switch self {
        case .passwordRequired: "the server requires a password, and none is configured"
        case .wrongPassword: "the server does not accept the user name and password"
        case .notPermitted(let step, let error):
            "the user may not send \(step.command), which is needed: \(error.text)"
        case .isReplica: "the server is a replica, and a master is needed"
        case .isSentinel: "the server is a Sentinel, which stores nothing"
        case .unavailable(let error): "the server cannot answer now: \(error.text)"
        case .refused(let step, let error): "the server refused \(step.command): \(error.text)"
        case .unexpectedReply(let step): "the reply to \(step.command) is none of Redis"
        }
    }

    /// Whether it will fail again until somebody has changed a configuration.
    package var isMisconfigured: Bool {
        switch self {
        case .passwordRequired, .wrongPassword, .notPermitted, .isSentinel, .refused,
            .unexpectedReply:
            true
        case .isReplica, .unavailable: false
        }
    }
}
