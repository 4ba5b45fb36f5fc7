import HTTPCore
import Notation
import RawStructuredFieldValues

/// The body and fields of a reply that says why the gateway did not do what was asked.
struct ErrorReply {
    let contentType: StaticString
    let body: [UInt8]
    /// The value of Proxy-Status (RFC 9209).
    let proxyStatus: [UInt8]

    /// - Parameters:
    ///   - id: names the exchange in the log.
    ///   - asJSON: the client prefers JSON to plain text.
    init(_ fault: ExchangeFault, id: String, asJSON: Bool) {
        let explanation = fault.explanation
        let reason = fault.reason.entry
        if asJSON {
            contentType = "application/json"
            body = Array(
                """
                {"status":\(reason.status),"reason":\(JSONText.quoted(reason.token)),\
                "message":\(JSONText.quoted(explanation)),"id":\(JSONText.quoted(id))}

                """.utf8)
        } else {
            contentType = "text/plain; charset=utf-8"
            body = Array(
                """
                \(reason.status) \(reason.token)
                \(explanation)
                id: \(id)

                """.utf8)
        }
        proxyStatus = Self.proxyStatus(fault, reason, explanation)
    }

    private static func proxyStatus(
        _ fault: ExchangeFault, _ reason: ReasonEntry, _ explanation: String
    ) -> [UInt8] {
        var parameters = OrderedMap<String, RFC9651BareItem>()
        parameters["error"] = .token(reason.errorType.rawValue)
        if case .nameNotResolved(let failure) = fault, let code = failure.rcode {
            parameters["rcode"] = .string("\(code)")
        }
        if case .tlsFailed(let error) = fault, let alert = error.receivedAlert {
            var name = alert.name
            if case .alertReceived(_, let told) = error { name = told }
            parameters["alert-id"] = .integer(Int64(alert.code))
            parameters["alert-message"] = .string(ascii(name, limit: 64))
        }
        parameters["details"] = .string(ascii("\(reason.token): \(explanation)", limit: 512))
        let item = Item(bareItem: RFC9651BareItem.token("pinfold"), parameters: parameters)
        var serializer = StructuredFieldValueSerializer()
        return (try? serializer.writeListFieldValue([.item(item)])) ?? Array("pinfold".utf8)
    }

    /// Only what a structured field's string may hold.
    private static func ascii(_ text: String, limit: Int) -> String {
        String(
            decoding: text.utf8.prefix(limit).map { 0x20..<0x7F ~= $0 ? $0 : 0x20 }, as: UTF8.self)
    }
}
