/// Why a Sentinel's reply is of no use.
package enum SentinelReplyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// It does not watch a master of this name.
    case unknownMaster
    case malformed
    case refused(RedisReplyError)

    package var description: String {
        switch self {
        case .unknownMaster: "it does not know a master of this name"
        case .malformed: "its reply is not one of Sentinel"
        case .refused(let error): "\(error)"
        }
    }
}

/// What is asked of Sentinels, and what they reply
/// (https://redis.io/docs/latest/develop/reference/sentinel-clients).
package enum SentinelReplies {
    /// Asks for the address of a master.
    package static func askMaster(_ name: [UInt8]) -> RedisCommand {
        RedisCommand(
            [Array("SENTINEL".utf8), Array("get-master-addr-by-name".utf8), name])
    }

    /// Asks for the other Sentinels that watch a master.
    package static func askSentinels(_ name: [UInt8]) -> RedisCommand {
        RedisCommand([Array("SENTINEL".utf8), Array("sentinels".utf8), name])
    }

    /// Reads the reply to ``askMaster(_:)``.
    package static func master(_ reply: RESPValue) throws(SentinelReplyError) -> RedisNode {
        switch reply {
        case .null: throw .unknownMaster
        case .error(let text): throw .refused(RedisReplyError(text))
        case .array(let parts):
            guard parts.count == 2, let host = parts[0].bytes, let port = parts[1].integer,
                let node = RedisNode(host: host, port: port)
            else { throw .malformed }
            return node
        case .boolean, .integer, .double, .bigNumber, .simple, .bulk, .verbatim, .set, .map:
            throw .malformed
        }
    }

    /// Reads the reply to ``askSentinels(_:)``, up to a number of them.
    package static func sentinels(
        _ reply: RESPValue, limit: Int
    ) throws(SentinelReplyError) -> [RedisNode] {
        if case .error(let text) = reply { throw .refused(RedisReplyError(text)) }
        guard let members = reply.elements else { throw .malformed }
        var nodes: [RedisNode] = []
        for member in members.prefix(limit) {
            guard let host = member.value(of: "ip")?.bytes,
                let port = member.value(of: "port")?.integer,
                let node = RedisNode(host: host, port: port)
            else { throw .malformed }
            if !nodes.contains(node) { nodes.append(node) }
        }
        return nodes
    }

    /// Reads the message `+switch-master`: `name oldHost oldPort newHost newPort`.
    /// - Returns: the new master; `nil` if it is of another name, or malformed.
    package static func switched(_ message: [UInt8], name: [UInt8]) -> RedisNode? {
        let words = message.split(
            separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 5, words[0].elementsEqual(name),
            let port = RESPNumber.integer(Array(words[4]).span)
        else { return nil }
        return RedisNode(host: Array(words[3]), port: port)
    }
}

/// What a server says that it is, in reply to `ROLE` or `HELLO`.
package enum RedisRole: Sendable, Hashable {
    case master
    case replica
    case sentinel

    /// Reads the reply to `ROLE`; `nil` for any other.
    package init?(_ reply: RESPValue) {
        guard let first = reply.elements?.first?.text else { return nil }
        self.init(word: first)
    }

    init?(word: String) {
        switch word {
        case "master", "primary": self = .master
        case "slave", "replica": self = .replica
        case "sentinel": self = .sentinel
        default: return nil
        }
    }
}
