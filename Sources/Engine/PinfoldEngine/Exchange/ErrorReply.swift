import HTTPCore
import RawStructuredFieldValues

/// The body and fields of a reply that explains why the gateway did not serve a request.
struct ErrorReply {
    let contentType: StaticString
    let body: [UInt8]
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

    /// - Parameters:
    ///   - id: identifies the exchange in the log.
    ///   - name: the name by which the gateway speaks of itself.
    ///   - server: the server that the client asked for; `nil` to leave it out.
    ///   - asJSON: whether the client prefers JSON to plain text.
    init(
        _ fault: ExchangeError, id: String, from name: GatewayName = .own, server: Server? = nil,
        asJSON: Bool
    ) {
        let explanation = fault.explanation
        let reason = fault.reason.entry
        let excerpt = Self.quoted(fault.excerpt)
        if asJSON {
            contentType = "application/json"
            var members = excerpt.map { ",\"excerpt\":\(JSONText.quoted($0))" } ?? ""
            if let server { members += ",\"server\":\(JSONText.quoted(server.name))" }
            if let addresses = server?.addresses {
                members += ",\"tried\":\(JSONText.quoted(addresses))"
            }
            body = Array(
                """
                {"status":\(fault.status),"reason":\(JSONText.quoted(reason.token)),\
                "message":\(JSONText.quoted(explanation))\(members),"id":\(JSONText.quoted(id))}

                """.utf8)
        } else {
            contentType = "text/plain; charset=utf-8"
            var lines = excerpt.map { "content: \($0)\n" } ?? ""
            if let server { lines += "server: \(server.name)\n" }
            if let addresses = server?.addresses { lines += "tried: \(addresses)\n" }
            body = Array(
                """
                \(fault.status) \(reason.token)
                \(explanation)
                \(lines)id: \(id)

                """.utf8)
        }
        proxyStatus = Self.proxyStatus(name, fault, reason, explanation, server)
    }

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
