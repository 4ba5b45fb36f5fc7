import COpenSSL
import HTTPCore

/// A client's opening handshake (RFC 6455, section 4.1): the fields of the request, and the
/// validation of the response.
public struct WebSocketHandshake: Hashable, Sendable {
    /// The value of Sec-WebSocket-Key: 16 random bytes in base64.
    public let key: String
    /// The subprotocols offered, in order of preference.
    public let protocols: [String]
    /// Whether permessage-deflate is offered.
    public let offersCompression: Bool

    /// What client and server have agreed on.
    public struct Agreement: Hashable, Sendable {
        /// The subprotocol chosen by the server, if any.
        public var subprotocol: String?
        /// Whether messages may be compressed.
        public var compresses: Bool
    }

    /// Creates a handshake with a random key.
    ///
    /// - Parameters:
    ///   - protocols: The subprotocols: unique tokens (section 4.1, 10).
    ///   - offersCompression: Whether to offer permessage-deflate, with each message compressed on
    ///     its own.
    public init(
        protocols: [String] = [], offersCompression: Bool = false,
        using generator: inout some RandomNumberGenerator
    ) {
        let bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
        self.init(
            key: Base64.encode(bytes), protocols: protocols, offersCompression: offersCompression)
    }

    /// Creates a handshake with a given key.
    public init(key: String, protocols: [String] = [], offersCompression: Bool = false) {
        (self.key, self.protocols) = (key, protocols)
        self.offersCompression = offersCompression
    }

    /// The fields of the request, an HTTP/1.1 GET, besides Host.
    public var fields: [(name: String, value: String)] {
        var fields = [
            (name: "Upgrade", value: "websocket"), (name: "Connection", value: "Upgrade"),
            (name: "Sec-WebSocket-Key", value: key), (name: "Sec-WebSocket-Version", value: "13"),
        ]
        if !protocols.isEmpty {
            fields.append(("Sec-WebSocket-Protocol", protocols.joined(separator: ", ")))
        }
        if offersCompression {
            fields.append(("Sec-WebSocket-Extensions", MessageDeflate.offer))
        }
        return fields
    }

    /// Returns the value of Sec-WebSocket-Accept that belongs to a key (section 4.2.2).
    public static func accept(for key: String) throws(WebSocketHandshakeError) -> String {
        let bytes = Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)
        var value = [UInt8](repeating: 0, count: 64)
        var count: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &value, &count, EVP_sha1(), nil) == 1 else {
            ERR_clear_error()
            throw .digestUnavailable
        }
        return Base64.encode(Array(value[..<Int(count)]))
    }

    /// Validates the response (section 4.1).
    ///
    /// - Parameter values: Returns the values of a field, one for each field line, given its name
    ///   in lower case.
    public func check(
        status: Int, values: (String) -> [String]
    ) throws(WebSocketHandshakeError) -> Agreement {
        guard status == 101 else { throw .status(status) }
        guard Self.members(values("upgrade")).contains("websocket") else { throw .noUpgrade }
        guard Self.members(values("connection")).contains("upgrade") else { throw .noUpgrade }
        let accepted = values("sec-websocket-accept")
        guard accepted.count == 1, accepted[0].withoutOuterSpace == (try Self.accept(for: key))
        else {
            throw .wrongAccept
        }
        let extensions = Self.members(values("sec-websocket-extensions"))
        guard extensions.isEmpty || extensions.count == 1 && offersCompression else {
            throw .unknownExtension
        }
        for text in extensions {
            let parts = text.split(separator: ";", omittingEmptySubsequences: false).map {
                String($0.withoutOuterSpace)
            }
            guard parts.first == "permessage-deflate",
                MessageDeflate.accepts(Array(parts.dropFirst()))
            else { throw .unknownExtension }
        }
        let chosen = values("sec-websocket-protocol").map { String($0.withoutOuterSpace) }
        guard chosen.count <= 1, chosen.allSatisfy(protocols.contains) else {
            throw .unknownProtocol
        }
        return Agreement(subprotocol: chosen.first, compresses: !extensions.isEmpty)
    }

    /// The members of a comma-separated list, in lower case.
    private static func members(_ values: [String]) -> [String] {
        values.flatMap { $0.split(separator: ",") }.map(\.withoutOuterSpace.lowercasedASCII)
            .filter { !$0.isEmpty }
    }
}

/// The reason why a response does not complete the handshake.
public enum WebSocketHandshakeError: Error, Hashable, Sendable {
    /// The status is not 101.
    case status(Int)
    /// The Upgrade or Connection field is missing or wrong.
    case noUpgrade
    /// Sec-WebSocket-Accept does not match the key, so the response was not meant for this
    /// handshake.
    case wrongAccept
    /// The server chose an extension that was not offered, or parameters that were not.
    case unknownExtension
    /// The server chose a subprotocol that was not offered, or more than one.
    case unknownProtocol
    /// OpenSSL does not provide SHA-1.
    case digestUnavailable
}
