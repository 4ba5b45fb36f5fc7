import EventLoop
import Foundation
import HTTPCore
import PinfoldMetrics
import PinfoldResolver
import PinfoldTLS
import RawStructuredFieldValues
import Testing
import Transformation
import Trust

@testable import PinfoldEngine

extension ErrorReply {
    fileprivate var text: String { String(decoding: body, as: UTF8.self) }
    fileprivate var status: String { String(decoding: proxyStatus, as: UTF8.self) }

    /// The one member of Proxy-Status, as RFC 9651 reads it.
    fileprivate func member() throws -> Item {
        var parser = StructuredFieldValueParser(proxyStatus)
        let list = try parser.parseListFieldValue()
        try #require(list.count == 1)
        guard case .item(let item) = list[0] else { throw WireError.malformedConnection }
        return item
    }
}

@Suite("Error replies")
struct ErrorReplyTests {
    @Test func `the text reply has status, reason, explanation and exchange`() {
        let reply = ErrorReply(.connectPortRefused(25), id: "0123456789abcdef", as: .text)
        #expect("\(reply.contentType)" == "text/plain; charset=utf-8")
        #expect(
            reply.text == """
                403 connect-port-refused
                CONNECT to port 25 is not allowed: add it to access.connectPorts, as in [443, 25]
                id: 0123456789abcdef

                """)
    }

    @Test func `the JSON reply has the same content`() {
        let reply = ErrorReply(.connectPortRefused(25), id: "0123456789abcdef", as: .json)
        #expect("\(reply.contentType)" == "application/json")
        #expect(
            reply.text == #"{"status":403,"reason":"connect-port-refused","#
                + #""message":"CONNECT to port 25 is not allowed: add it to access.connectPorts, "#
                + #"as in [443, 25]","id":"0123456789abcdef"}"# + "\n")
    }

    @Test(
        arguments: [
            (
                .connectPortRefused(25),
                #"pinfold;error=http_request_denied;details="connect-port-refused: "#
                    + "CONNECT to port 25 is not allowed: add it to access.connectPorts, "
                    + #"as in [443, 25]""#
            ),
            (
                .nameNotResolved(.nxdomain),
                #"pinfold;error=dns_error;rcode="NXDOMAIN";details="dns-nxdomain: "#
                    + #"the host name does not exist""#
            ),
            (
                .nameNotResolved(.timeout),
                #"pinfold;error=dns_timeout;details="dns-timeout: "#
                    + #"no name server answered in time""#
            ),
            (
                .tlsFailed(.alertReceived(code: 40, name: "handshake_failure")),
                #"pinfold;error=tls_alert_received;alert-id=40;"#
                    + #"alert-message="handshake_failure";details="tls-alert-received: "#
                    + #"no secure connection to the server: the server sent the alert "#
                    + #"handshake_failure (40)""#
            ),
        ] as [(ExchangeError, String)])
    func `Proxy-Status has the parameters of its error type`(fault: ExchangeError, expected: String)
    {
        for format in ReplyFormat.allCases {
            #expect(ErrorReply(fault, id: "1", as: format).status == expected)
        }
    }

    @Test func `every Proxy-Status is a structured field`() throws {
        for fault in EveryExchangeError.all {
            let reply = ErrorReply(fault, id: "1", as: .text)
            let item = try reply.member()
            #expect(item.rfc9651BareItem == .token("pinfold"))
            #expect(
                item.rfc9651Parameters["error"] == .token(fault.reason.entry.errorType.rawValue))
            guard case .string(let details) = item.rfc9651Parameters["details"] else {
                Issue.record("\(fault): no details")
                continue
            }
            #expect(details.hasPrefix(fault.reason.token + ": "))
            #expect(details.utf8.count <= 512)
            #expect(reply.proxyStatus.allSatisfy { 0x20..<0x7F ~= $0 })
        }
    }

    @Test func `every JSON body is JSON with the same parts`() throws {
        struct Body: Decodable, Equatable {
            var status: UInt16
            var reason: String
            var message: String
            var id: String
        }
        for fault in EveryExchangeError.all {
            let reply = ErrorReply(fault, id: "a-b", as: .json)
            let body = try JSONDecoder().decode(Body.self, from: Data(reply.body))
            #expect(
                body
                    == Body(
                        status: fault.status, reason: fault.reason.token,
                        message: fault.explanation,
                        id: "a-b"))
        }
    }

    @Test func `every text body has three lines, and one more for what it quotes`() {
        for fault in EveryExchangeError.all {
            let lines = ErrorReply(fault, id: "a-b", as: .text).text.split(
                separator: "\n", omittingEmptySubsequences: false)
            let quoted: [Substring] = fault.excerpt.isEmpty ? [] : ["content: {"]
            #expect(
                lines == ["\(fault.status) \(fault.reason.token)", Substring(fault.explanation)]
                    + quoted + ["id: a-b", ""])
        }
    }

    @Test func `quoted content cannot be confused with lines of the reply`() {
        let excerpt = Array("a\nid: 1\r\n\u{85}\u{2028}\u{1B}[1m\"".utf8) + [0xFF, 0]
        let fault = ExchangeError.transformation(
            TransformationError(.responseBodyInvalid, "not JSON", excerpt: excerpt))
        let text = ErrorReply(fault, id: "a-b", as: .text).text
        #expect(text.contains("\ncontent: a id: 1     [1m\"\u{FFFD} \nid: a-b\n"))
        let json = ErrorReply(fault, id: "a-b", as: .json).text
        #expect(json.contains(#""excerpt":"a id: 1     [1m\"� ""#))
    }

    private let asked = ErrorReply.Asked(host: "<a>&.test:80", seconds: 1_795_236_013)
    private let server = ErrorReply.Server(name: "a.test:80", addresses: "192.0.2.1: \"refused\"")

    @Test func `every reply in JSON has the host and the time, and a problem has a title`() throws {
        struct Body: Decodable {
            var status: UInt16
            var reason: String
            var id: String
            var host: String
            var time: String
            var server: String
            var tried: String
            var message: String?
            var type: String?
            var title: String?
            var detail: String?
        }
        for fault in EveryExchangeError.all {
            for format in [ReplyFormat.json, .problem] {
                let reply = ErrorReply(fault, id: "a-b", server: server, asked: asked, as: format)
                let body = try JSONDecoder().decode(Body.self, from: Data(reply.body))
                #expect(body.status == fault.status && body.reason == fault.reason.token)
                #expect(body.host == "<a>&.test:80" && body.time == "2026-11-21T04:40:13Z")
                #expect(body.server == "a.test:80" && body.tried == "192.0.2.1: \"refused\"")
                #expect((body.message ?? body.detail) == fault.explanation && body.id == "a-b")
                #expect((body.title == nil) == (format == .json))
                #expect((body.type == "about:blank") == (format == .problem))
            }
        }
    }

    @Test func `every reply in XML is a property list`() throws {
        let excerpt = Array("a<&>\u{1}\u{FFFE}b".utf8)
        let quoting = ExchangeError.transformation(
            TransformationError(.responseBodyInvalid, "not JSON ]]>", excerpt: excerpt))
        for fault in EveryExchangeError.all + [quoting] {
            let reply = ErrorReply(
                fault, id: "a-b", server: server, asked: asked, as: .propertyList)
            #expect(
                reply.body
                    == ErrorReply(fault, id: "a-b", server: server, asked: asked, as: .xml).body)
            let list = try PropertyListSerialization.propertyList(
                from: Data(reply.body), options: [], format: nil)
            let values = try #require(list as? [String: Any])
            #expect(values["status"] as? Int == Int(fault.status))
            #expect(values["message"] as? String == fault.explanation)
            #expect(values["host"] as? String == "<a>&.test:80")
            #expect(
                values["time"] as? Date == Date(timeIntervalSince1970: 1_795_236_013))
        }
    }

    @Test func `no value is markup in the page, and it has what there is`() {
        let fault = ExchangeError.tlsFailed(.protocolViolation("<script>'\"&"))
        let reply = ErrorReply(fault, id: "a-b", server: server, asked: asked, as: .html)
        let text = reply.text
        #expect(!text.contains("<script"))
        #expect(text.contains("&#60;script&#62;&#39;&#34;&#38;"))
        #expect(text.contains("<dt>host</dt><dd>&#60;a&#62;&#38;.test:80</dd>"))
        #expect(text.contains("<dt>id</dt><dd>a-b</dd>"))
        #expect(text.contains("<title>\(fault.status) Bad Gateway</title>"))
        let least = ErrorReply(fault, id: "a-b", as: .html).text
        #expect(!least.contains("<dt>host") && !least.contains("<dt>tried"))
    }

    @Test func `a reply whose status has no words says what its class means`() {
        #expect(
            ErrorReplyContent(status: 418, reason: "r", message: "m", id: "1").phrase == "Refused")
        #expect(
            ErrorReplyContent(status: 599, reason: "r", message: "m", id: "1").phrase == "Failed")
    }

    @Test(
        arguments: [
            (nil, .text), ("", .text), ("*/*", .text), ("text/*", .text), ("image/png", .text),
            ("application/json, text/plain, */*", .text), ("application/*", .json),
            ("application/json;q=0.5", .json), ("application/json, text/html", .json),
            ("application/problem+json", .problem),
            ("application/json;q=0.1, application/problem+json;q=0.2", .problem),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", .html),
            ("TEXT/HTML", .html), ("text/html;q=0", .text),
            ("application/x-plist, application/json;q=0.9", .propertyList),
            ("application/xml", .xml), ("text/xml, */*;q=0.1", .xml),
        ] as [(String?, ReplyFormat)])
    func `the format is what the client prefers`(accept: String?, format: ReplyFormat) {
        #expect(ReplyFormat(preferredBy: AcceptedMediaTypes(accept)) == format)
    }

    @Test func `details outside ASCII become spaces`() throws {
        let fault = ExchangeError.tlsFailed(.protocolViolation("é\u{7F}\u{1}\n\"\\x"))
        let reply = ErrorReply(fault, id: "1", as: .text)
        guard case .string(let details) = try reply.member().rfc9651Parameters["details"] else {
            Issue.record("no details")
            return
        }
        // Two bytes of é, DEL, and two controls; quote and backslash are escaped on the wire.
        #expect(details.hasSuffix("protocol:      \"\\x"))
        #expect(reply.status.hasSuffix(#"\"\\x""#))
        // The body is UTF-8 and keeps the letters.
        #expect(reply.text.contains("é"))
    }

    @Test func `long details are cut, and the field is still one`() throws {
        for filler in ["x", "\"", "\\", "é", "𝄞"] {
            let text = String(repeating: filler, count: 2000)
            let fault = ExchangeError.tlsFailed(.protocolViolation(text))
            let item = try ErrorReply(fault, id: "1", as: .text).member()
            guard case .string(let details) = item.rfc9651Parameters["details"] else {
                Issue.record("no details")
                continue
            }
            #expect(details.utf8.count == 512)
        }
    }

    @Test func `a long alert name is cut`() throws {
        let name = String(repeating: "n", count: 65)
        let fault = ExchangeError.tlsFailed(.alertReceived(code: 255, name: name))
        let item = try ErrorReply(fault, id: "1", as: .text).member()
        #expect(item.rfc9651Parameters["alert-id"] == .integer(255))
        #expect(item.rfc9651Parameters["alert-message"] == .string(String(name.prefix(64))))
    }
}
