import HTTPCore

/// What a gateway and its successor tell each other while one hands over to the other: a JSON
/// object for each message.
///
///     successor                         predecessor
///         ◄── sockets (descriptors) ── at once
///         ◄── sockets, the last ──
///         ◄── counters ──
///         ── cache ──►                  hands over the cache's database
///         ◄── lock (descriptor) ──
///         ── ready ──►
///         ◄── ticketKeys (descriptor) ── if there are any
///         ◄── accept ──                 stops accepting, and finishes
///         ── failed ──►                 goes on as before
///         ◄── counters ──               every second, and when all workers have ended
///         ◄── end of the connection ── when it has ended
///         ── leaving ──►                does not serve again, though the successor ends
///
/// A member that one side does not know is ignored, so that a later version can say more.
enum HandoverMessage: Equatable, Sendable {
    /// Listening sockets, each with its descriptor, in the same order.
    case sockets([HandedSocket], isLast: Bool)
    /// All counters, in the text format of `/metrics`, in a file whose descriptor comes along.
    case counters
    /// The successor has read its configuration, and needs the database of the cache in a folder.
    case cache(folder: String)
    /// The lock of that folder comes along, or nothing if the predecessor does not have it.
    case lock
    /// The keys of clients' session tickets, in a pipe whose descriptor comes along.
    case ticketKeys
    /// The successor is to accept, as the predecessor stops to.
    case accept
    /// The successor could serve, but accepts nothing yet.
    /// - unused: the sockets that it does not accept on.
    case ready(version: String, unused: [HandedSocket])
    /// The successor was told to end.
    case leaving
    /// The successor gives up, and says why.
    case failed(String)

    /// The most sockets of a message.
    static let socketsPerMessage = 64

    var bytes: [UInt8] {
        let members: [(name: String, value: JSONValue)] =
            switch self {
            case .sockets(let sockets, let isLast):
                [
                    ("message", .string("sockets")), ("isLast", .boolean(isLast)),
                    ("sockets", .array(sockets.map(\.json))),
                ]
            case .counters:
                [("message", .string("counters"))]
            case .cache(let folder):
                [("message", .string("cache")), ("folder", .string(folder))]
            case .lock:
                [("message", .string("lock"))]
            case .ticketKeys:
                [("message", .string("ticketKeys"))]
            case .accept:
                [("message", .string("accept"))]
            case .leaving:
                [("message", .string("leaving"))]
            case .ready(let version, let unused):
                [
                    ("message", .string("ready")), ("version", .string(version)),
                    ("unused", .array(unused.map(\.json))),
                ]
            case .failed(let reason):
                [("message", .string("failed")), ("reason", .string(reason))]
            }
        return Array(JSONValue.object(members).text.utf8)
    }

    /// Parses a message; `nil` for one that this version does not know.
    init?(_ bytes: [UInt8]) {
        guard let value = try? JSONReader.read(bytes[...]),
            case .string(let kind)? = value["message"]
        else { return nil }
        switch kind {
        case "sockets":
            guard case .boolean(let isLast)? = value["isLast"],
                case .array(let values)? = value["sockets"]
            else { return nil }
            let sockets = values.compactMap(HandedSocket.init)
            guard sockets.count == values.count else { return nil }
            self = .sockets(sockets, isLast: isLast)
        case "counters": self = .counters
        case "ticketKeys": self = .ticketKeys
        case "accept": self = .accept
        case "lock": self = .lock
        case "cache":
            guard case .string(let folder)? = value["folder"] else { return nil }
            self = .cache(folder: folder)
        case "leaving": self = .leaving
        case "ready":
            guard case .string(let version)? = value["version"] else { return nil }
            var unused: [HandedSocket] = []
            if case .array(let values)? = value["unused"] {
                unused = values.compactMap(HandedSocket.init)
            }
            self = .ready(version: version, unused: unused)
        case "failed":
            guard case .string(let reason)? = value["reason"] else { return nil }
            self = .failed(reason)
        default: return nil
        }
    }
}

/// A listening socket that a gateway hands to its successor, apart from its descriptor.
enum HandedSocket: Equatable, Sendable {
    /// One that the gateway opened, for a listener or the administration.
    /// - address: what is configured, which may be of port 0.
    case opened(name: String, address: String, isAdmin: Bool)
    /// One that the service manager passed under a name.
    case passed(name: String)

    var json: JSONValue {
        switch self {
        case .opened(let name, let address, let isAdmin):
            .object([
                ("name", .string(name)), ("address", .string(address)),
                ("isAdmin", .boolean(isAdmin)),
            ])
        case .passed(let name): .object([("passedAs", .string(name))])
        }
    }

    init?(_ json: JSONValue) {
        if case .string(let name)? = json["passedAs"] {
            self = .passed(name: name)
        } else if case .string(let name)? = json["name"],
            case .string(let address)? = json["address"],
            case .boolean(let isAdmin)? = json["isAdmin"]
        {
            self = .opened(name: name, address: address, isAdmin: isAdmin)
        } else {
            return nil
        }
    }
}
