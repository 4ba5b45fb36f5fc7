import HTTPCore
import PinfoldConfiguration

/// The fields that tell a reverse route's upstream about the client's side: X-Forwarded-For, -Host,
/// -Proto and Forwarded (RFC 7239). They are written directly into the head; nothing is allocated.
struct ForwardedFields {
    private let forwarding: ForwardingConfiguration
    /// The client, or the proxy that it came through; `nil` for an exchange in the background.
    private let peer: IPAddress?
    /// Whether the request's own values of these fields are trusted.
    let isTrusted: Bool

    init(_ forwarding: ForwardingConfiguration, peer: IPAddress?) {
        self.forwarding = forwarding
        self.peer = peer?.unmapped
        isTrusted = peer.map { forwarding.trusts($0.unmapped) } ?? false
    }

    /// The most bytes that are written in addition to the request's own fields and twice its host.
    static let reservedBytes = 256

    private static let hostAndProtocol = FieldIDSet([.xForwardedHost, .xForwardedProto])

    /// Whether the response may depend on something that is not part of the cache key: a value that
    /// an untrusted client sent in a field whose trusted value is part of the key, an element of
    /// Forwarded that was trusted, or a host that differs from the Host field.
    func bypassesCache(_ request: borrowing RequestHead) -> Bool {
        if request.hostConflicts { return true }
        guard forwarding.trustsSomebody else { return false }
        return isTrusted
            ? request.fields.contains(.forwarded)
            : request.fields.present.intersects(Self.hostAndProtocol)
    }

    /// Writes the fields that the mode asks for, each line with CRLF.
    func append(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, to writer: inout HeadWriter
    ) {
        guard forwarding.mode != .none else { return }
        let host = Self.host(of: request, in: bytes)
        appendFor(request, bytes, &writer)
        appendKept(.xForwardedHost, request, bytes, own: host, &writer)
        writer.append("X-Forwarded-Proto: ")
        if let value = kept(.xForwardedProto, request) {
            writer.append(value, of: bytes)
        } else {
            writer.append(proto)
        }
        writer.appendLineEnd()
        appendForwarded(request, bytes, host, &writer)
    }

    /// The host that the client names: Host's value, or the target's where they differ.
    static func host(of request: borrowing RequestHead, in bytes: Span<UInt8>) -> ByteRange {
        guard !request.hostConflicts, let field = request.fields.first(.host),
            !field.value.isEmpty
        else { return request.authority }
        return field.value
    }

    /// The value that a trusted proxy sent, the last if there are several.
    private func kept(_ id: FieldID, _ request: borrowing RequestHead) -> ByteRange? {
        guard isTrusted, request.fields.contains(id) else { return nil }
        var value: ByteRange?
        for field in request.fields where field.id == id && !field.value.isEmpty {
            value = field.value
        }
        return value
    }

    private func appendKept(
        _ id: FieldID, _ request: borrowing RequestHead, _ bytes: Span<UInt8>, own: ByteRange,
        _ writer: inout HeadWriter
    ) {
        let value = kept(id, request) ?? own
        if !value.isEmpty { writer.append(field: id, bytes.extracting(value.indices)) }
    }

    /// The values that a trusted proxy sent, each followed by a comma.
    private func appendList(
        _ id: FieldID, _ request: borrowing RequestHead, _ bytes: Span<UInt8>,
        _ writer: inout HeadWriter
    ) {
        guard isTrusted, request.fields.contains(id) else { return }
        for field in request.fields where field.id == id && !field.value.isEmpty {
            writer.append(field.value, of: bytes)
            writer.append(", ")
        }
    }

    private func appendFor(
        _ request: borrowing RequestHead, _ bytes: Span<UInt8>, _ writer: inout HeadWriter
    ) {
        guard let peer else { return }
        writer.append("X-Forwarded-For: ")
        appendList(.xForwardedFor, request, bytes, &writer)
        if peer == .unnamed {
            writer.append("unknown")
        } else {
            peer.text.withUnsafeBytes { writer.append(bytes: $0) }
        }
        writer.appendLineEnd()
    }

    /// `for=192.0.2.1;host="a.example:8080";proto=http`. An IPv6 address is in brackets, and
    /// quoted with them, and so is a host with its port (RFC 7239 §6, §4).
    private func appendForwarded(
        _ request: borrowing RequestHead, _ bytes: Span<UInt8>, _ host: ByteRange,
        _ writer: inout HeadWriter
    ) {
        writer.append("Forwarded: ")
        appendList(.forwarded, request, bytes, &writer)
        switch peer {
        // RFC 7239 §6.2: a client without an address.
        case .unnamed?: writer.append("for=unknown;")
        case .v4(let value):
            writer.append("for=")
            IPAddress.v4(value).text.withUnsafeBytes { writer.append(bytes: $0) }
            writer.append(";")
        case .v6?:
            writer.append("for=\"[")
            peer?.text.withUnsafeBytes { writer.append(bytes: $0) }
            writer.append("]\";")
        case nil: break
        }
        if !host.isEmpty {
            writer.append("host=\"")
            writer.append(host, of: bytes)
            writer.append("\";")
        }
        writer.append("proto=")
        writer.append(proto)
        writer.appendLineEnd()
    }

    /// The scheme that clients use towards the gateway.
    private var proto: StaticString { forwarding.clientsSpeakTLS ? "https" : "http" }
}
