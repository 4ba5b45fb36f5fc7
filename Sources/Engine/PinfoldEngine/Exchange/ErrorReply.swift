import HTTPCore
import RawStructuredFieldValues

/// The body and fields of a reply that explains why the gateway did not serve a request.
struct ErrorReply {
    let format: ReplyFormat
    let content: ErrorReplyContent
    /// The value of Proxy-Status (RFC 9209).
    let proxyStatus: [UInt8]

    /// The server that could not be reached, or that failed.
    struct Server {
        /// `host:port`.
        var name: String
        /// Its address, or those that were tried with their results; `nil` if there are none.
        var addresses: String?
        /// The address of the last attempt; `nil` if there was none.
        var nextHop: Endpoint?
        /// What the connection to it carries; `nil` if there was none.
        var carrier: HTTPCarrier?
    }

    /// What the request was, for whoever reads the reply.
    struct Asked {
        /// The host, and the port if there is one, as the client named it; `nil` if it is not
        /// known.
        var host: String?
        /// When the reply is written, in seconds since 1970; `nil` to leave it out.
        var seconds: Int64?
    }

    /// - Parameters:
    ///   - id: identifies the exchange in the log.
    ///   - name: the name by which the gateway speaks of itself.
    ///   - server: the server that the client asked for; `nil` to leave it out.
    ///   - asked: what the request was.
    ///   - format: what the reply is written in.
    init(
        _ fault: ExchangeError, id: String, from name: GatewayName = .own, server: Server? = nil,
        asked: Asked = Asked(), as format: ReplyFormat
    ) {
        content = ErrorReplyContent(
            status: fault.status, reason: fault.reason.token, message: fault.explanation,
            excerpt: Self.quoted(fault.excerpt), server: server?.name, tried: server?.addresses,
            id: id, host: asked.host, seconds: asked.seconds)
        self.format = format
        proxyStatus = Self.proxyStatus(
            name, fault, fault.reason.entry, fault.explanation, server)
    }

    var contentType: StaticString { format.contentType }
    var body: [UInt8] { content.written(in: format) }

    /// Foreign content on one line, so that it cannot be mistaken for the gateway's own text:
    /// invisible characters become spaces, and invalid UTF-8 is replaced. `nil` if there is none.
    private static func quoted(_ excerpt: [UInt8]) -> String? {
        guard !excerpt.isEmpty else { return nil }
        let text = String(decoding: excerpt, as: UTF8.self).unicodeScalars.map {
            $0.properties.isWhitespace || $0.properties.generalCategory == .control ? " " : $0
        }
        return String(String.UnicodeScalarView(text))
    }

    private static func proxyStatus(
        _ name: GatewayName, _ fault: ExchangeError, _ reason: ReasonEntry,
        _ explanation: String, _ server: Server?
    ) -> [UInt8] {
        var parameters = OrderedMap<String, RFC9651BareItem>()
        parameters["error"] = .token(reason.errorType.rawValue)
        // RFC 9209 §2.1.2: as the connection knows it, which is the address.
        if let nextHop = server?.nextHop {
            parameters["next-hop"] = .string("\(nextHop.address)")
        }
        // RFC 9209 §2.1.3: the name in ALPN. HTTP/1.1 is what everybody expects.
        switch server?.carrier {
        case .http2?: parameters["next-protocol"] = .token("h2")
        case .http1?, nil: break
        }
        if case .nameNotResolved(let failure) = fault, let code = failure.rcode {
            parameters["rcode"] = .string("\(code)")
        }
        if case .tlsFailed(let error) = fault, let alert = error.receivedAlert {
            var message = alert.name
            if case .alertReceived(_, let text) = error { message = text }
            parameters["alert-id"] = .integer(Int64(alert.code))
            parameters["alert-message"] = .string(ascii(message, limit: 64))
        }
        parameters["details"] = .string(ascii("\(reason.token): \(explanation)", limit: 512))
        let item = Item(bareItem: RFC9651BareItem.token(name.text), parameters: parameters)
        var serializer = StructuredFieldValueSerializer()
        return (try? serializer.writeListFieldValue([.item(item)])) ?? name.bytes
    }

    /// Only the characters that a structured field's string may contain.
    private static func ascii(_ text: String, limit: Int) -> String {
        String(
            decoding: text.utf8.prefix(limit).map { 0x20..<0x7F ~= $0 ? $0 : 0x20 }, as: UTF8.self)
    }
}
