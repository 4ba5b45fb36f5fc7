import HTTPCore

/// Where a server is, as it is written in a configuration:
///
///     redis://[user@]host[:port][/database]
///     rediss://[user@]host[:port][/database]      by TLS
///     unix://[user@]/path/of/socket[?db=database]
///
/// A password is in none of them: a configuration is read by more people than may know it.
package struct RedisURL: Sendable, Hashable {
    /// How it is reached.
    package enum Server: Sendable, Hashable {
        /// - Parameter host: a name in lower case, or an address without brackets.
        case tcp(host: String, port: UInt16, isSecure: Bool)
        case unix(path: String)
    }

    package let server: Server
    /// `nil` for the default one.
    package let user: String?
    package let database: Int

    /// The port where none is written.
    package static let defaultPort: UInt16 = 6379
    /// The highest number of a database that a server may be configured for, and more.
    package static let databases = 0...65_535

    /// Reads one.
    package init(_ text: String) throws(RedisURLError) {
        guard let colon = text.firstRange(of: "://") else { throw .noScheme }
        let scheme = text[..<colon.lowerBound].lowercased()
        let rest = text[colon.upperBound...]
        guard rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            throw .badCharacter
        }
        switch scheme {
        case "redis": try self.init(rest, isSecure: false)
        case "rediss": try self.init(rest, isSecure: true)
        case "unix": try self.init(socket: rest)
        default: throw .unknownScheme
        }
    }

    private init(_ rest: Substring, isSecure: Bool) throws(RedisURLError) {
        guard !rest.contains("?") else { throw .hasQuery }
        let parts = rest.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let (user, place) = try Self.user(parts[0])
        let (host, port) = try Self.host(place)
        server = .tcp(host: host, port: port, isSecure: isSecure)
        self.user = user
        database = try parts.count > 1 && !parts[1].isEmpty ? Self.database(parts[1]) : 0
    }

    private init(socket rest: Substring) throws(RedisURLError) {
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let start = parts[0].firstIndex(of: "/") ?? parts[0].endIndex
        let (user, host) = try Self.user(parts[0][..<start])
        let path = String(parts[0][start...])
        guard host.isEmpty, path.utf8.count > 1 else { throw .noPath }
        guard path.utf8.count <= UnixSocketPath.maximumBytes else { throw .pathTooLong }
        server = .unix(path: path)
        self.user = user
        guard parts.count > 1 else {
            database = 0
            return
        }
        guard parts[1].hasPrefix("db=") else { throw .hasQuery }
        database = try Self.database(parts[1].dropFirst(3))
    }

    /// What is before the last `@`, and what is after it.
    private static func user(
        _ text: Substring
    ) throws(RedisURLError) -> (user: String?, rest: Substring) {
        guard let at = text.lastIndex(of: "@") else { return (nil, text) }
        let user = text[..<at]
        guard !user.contains(":") else { throw .hasPassword }
        guard !user.isEmpty, !user.contains("%") else { throw .badUser }
        return (String(user), text[text.index(after: at)...])
    }

    private static func host(
        _ text: Substring
    ) throws(RedisURLError) -> (host: String, port: UInt16) {
        var host = text
        var port: Substring?
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { throw .badHost }
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.first == ":" else { throw .badHost }
            port = rest.isEmpty ? nil : rest.dropFirst()
            let bytes = Array(host.utf8)
            guard case .v6? = IPAddress(literal: bytes.span) else { throw .badHost }
        } else if let colon = text.lastIndex(of: ":") {
            host = text[..<colon]
            port = text[text.index(after: colon)...]
        }
        guard !host.isEmpty else { throw .noHost }
        guard text.first == "[" || isName(host) else { throw .badHost }
        guard let port else { return (host.lowercased(), defaultPort) }
        guard let number = number(port), let port = UInt16(exactly: number), port > 0 else {
            throw .badPort
        }
        return (host.lowercased(), port)
    }

    /// Whether it can be a name or an IPv4 address.
    private static func isName(_ text: Substring) -> Bool {
        text.utf8.count <= 253
            && text.utf8.allSatisfy {
                ASCII.isDigit($0) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20)
                    || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
                    || $0 == UInt8(ascii: "_")
            }
    }

    private static func database(_ text: Substring) throws(RedisURLError) -> Int {
        guard let number = number(text), databases.contains(number) else { throw .badDatabase }
        return number
    }

    /// Digits only, without a leading zero.
    private static func number(_ text: Substring) -> Int? {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy(ASCII.isDigit),
            text == "0" || text.first != "0"
        else { return nil }
        return Int(text)
    }
}

extension RedisURL: CustomStringConvertible {
    package var description: String {
        let user = user.map { $0 + "@" } ?? ""
        switch server {
        case .tcp(let host, let port, let isSecure):
            let place = host.contains(":") ? "[\(host)]" : host
            let database = database == 0 ? "" : "/\(database)"
            return (isSecure ? "rediss" : "redis") + "://\(user)\(place):\(port)\(database)"
        case .unix(let path):
            return "unix://\(user)\(path)" + (database == 0 ? "" : "?db=\(database)")
        }
    }
}

/// Why a text says of no server where it is.
package enum RedisURLError: Error, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    case noScheme
    case unknownScheme
    case badCharacter
    case noHost
    case badHost
    case badPort
    case badDatabase
    case badUser
    case hasPassword
    case hasQuery
    case noPath
    case pathTooLong

    package var description: String {
        switch self {
        case .noScheme: "it does not begin with a scheme and ://"
        case .unknownScheme: "its scheme is none of redis, rediss and unix"
        case .badCharacter: "it has a space, a #, or a character that is not ASCII"
        case .noHost: "it has no host"
        case .badHost: "its host is neither a name nor an address (of IPv6 in brackets)"
        case .badPort: "its port is not a number from 1 to 65535"
        case .badDatabase: "its database is not a number from 0 to 65535"
        case .badUser: "its user is empty, or has a %"
        case .hasPassword: "it has a password, which belongs in a file of its own"
        case .hasQuery: "it has a query (of a socket, only ?db= and a number may follow)"
        case .noPath: "the path of the socket is not absolute"
        case .pathTooLong:
            "the path of the socket is longer than \(UnixSocketPath.maximumBytes) bytes"
        }
    }
}
