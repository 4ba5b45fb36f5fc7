import Foundation
import HTTPCore
import PinfoldMetrics
import PinfoldTLS
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("Access log: lines")
struct AccessLogFormatterTests {
    private func line(
        _ format: AccessLogFormat, _ request: LoggedRequest, session: ClientSession? = nil,
        notes: FlowNotes = FlowNotes(),
        _ change: (inout FlowRecord) -> Void = { _ in }
    ) -> String {
        var record = LoggedRequest.record(0xabc)
        change(&record)
        let ring = FlowQueue(limits: FlowQueueLimits())
        defer { ring.deallocate() }
        let (bytes, texts) = request.head
        _ = ring.push(record, head: bytes.span, texts, session: session, notes: notes)
        var formatter = AccessLogFormatter(format: format, labels: LoggedRequest.labels)
        var output = LineBuffer(capacity: 4096)
        _ = ring.drain(upTo: ring.headPosition) { formatter.append($0, to: &output) }
        return String(decoding: output.bytes, as: UTF8.self)
    }

    private func full(_ record: inout FlowRecord) {
        record.counted.status = 502
        record.counted.cache = .hitStale
        record.counted.failure = 0
        record.forwarded = .varyMiss
        // By its place among the reasons.
        record.counted.notStored = 2
        record.counted.requestBytes = 12
        record.counted.responseBytes = 3456
        record.counted.durationMicroseconds = 789
        record.phases.add(.queue, 0)
        record.phases.add(.dns, 1)
        record.phases.add(.connect, 20)
        record.phases.add(.tls, 300)
        record.phases.add(.firstByte, 400)
        record.phases.add(.body, 60)
        record.isReused = false
        record.upstreamVersion = .http2
        record.upstreamTLS = .tls13
        record.setUpstream(Endpoint(address: .v6(0x2001_0db8_0000_0000, 1), port: 443))
    }

    @Test func `a server on a Unix socket is shown by its path, a parent by its name`() {
        let request = LoggedRequest(method: "GET", target: "/")
        let notes = FlowNotes(way: Array("/run/\"a\".sock".utf8))
        let socket = line(.json, request, notes: notes) { $0.setUpstream(.unnamed) }
        #expect(socket.contains(#""upstream":"unix:/run/\"a\".sock""#), "\(socket)")
        #expect(!socket.contains("parent"))
        let parent = line(.json, request, notes: FlowNotes(way: Array("corp".utf8))) {
            $0.setUpstream(Endpoint(address: .loopbackV4, port: 3128))
        }
        #expect(parent.contains(#""parent":"corp","upstream":"127.0.0.1:3128""#), "\(parent)")
    }

    @Test func `a JSON line has everything that is known`() {
        let request = LoggedRequest(
            method: "POST", target: "http://u:p@h/x?\"q\"", userAgent: "curl/8",
            referer: "http://r/")
        #expect(
            line(.json, request, full) == """
                {"time":"2026-11-21T04:40:13.123Z","id":"0000000000000abc",\
                "client":"127.0.0.1:5000","listener":"proxy","host":"api","method":"POST",\
                "target":"http://***@h/x?\\"q\\"","version":"HTTP/1.1","status":502,\
                "duration_us":789,"queue_us":0,"dns_us":1,"connect_us":20,"tls_us":300,\
                "first_byte_us":400,"body_us":60,\
                "request_bytes":12,"response_bytes":3456,"cache":"hit_stale",\
                "forwarded":"vary-miss","not_stored":"no-store",\
                "upstream":"[2001:db8::1]:443","reused":false,"upstream_version":"HTTP/2.0",\
                "upstream_tls":"TLSv1.3","reason":"pin_mismatch",\
                "user_agent":"curl/8","referer":"http://r/"}

                """)
    }

    @Test(
        arguments: zip(InterceptionPass.allCases, ["not_tls", "server_first", "rejected"]))
    func `a tunnel that was not intercepted has the reason`(pass: InterceptionPass, word: String) {
        let request = LoggedRequest(method: "CONNECT", target: "h:443")
        let text = line(.json, request) { $0.interceptionPass = pass }
        #expect(text.contains(",\"passed\":\"\(word)\""))
    }

    @Test(
        arguments: zip(
            TunnelInspection.allCases, ["verified", "resumed", "probed", "intercepted", "refused"]))
    func `a tunnel that was inspected has the result`(
        inspection: TunnelInspection, word: String
    ) {
        let request = LoggedRequest(method: "CONNECT", target: "h:443")
        let text = line(.json, request) { $0.inspection = inspection }
        #expect(text.contains(",\"inspected\":\"\(word)\""))
    }

    @Test func `a JSON line is whole even if next to nothing is known`() {
        let request = LoggedRequest(method: "", target: "")
        let text = line(.json, request) { record in
            record.counted.status = 0
            record.version = nil
            record.counted.route = RouteIndex(
                listener: LabelIndex(slot: 2, use: 0), host: LabelIndex(slot: 1, use: 1))
        }
        #expect(
            text == """
                {"time":"2026-11-21T04:40:13.123Z","id":"0000000000000abc",\
                "client":"127.0.0.1:5000","listener":"pay\\"ments","host":"other","method":"",\
                "target":"","version":"","status":null,"duration_us":0,"request_bytes":0,\
                "response_bytes":0,"cache":"none"}

                """)
    }

    @Test func `a JSON line has a client's TLS version and identity`() {
        let device = ClientSession(
            version: .tls12, cipherSuite: "ECDHE-RSA", subject: "CN=\\\"a\\\",O=x")
        let text = line(.json, LoggedRequest(userAgent: "curl"), session: device) { record in
            record.clientTLS = .tls12
        }
        #expect(
            text.contains(
                #""cache":"none","client_tls":"TLSv1.2","client_cipher":"ECDHE-RSA","#
                    + #""client_subject":"CN=\\\"a\\\",O=x","user_agent":"curl"}"#))
        let anonymous = ClientSession(version: .tls10, cipherSuite: "AES", subject: nil)
        let other = line(.json, LoggedRequest(), session: anonymous) { $0.clientTLS = .tls10 }
        #expect(other.contains(#""client_tls":"TLSv1.0","client_cipher":"AES"}"#))
    }

    @Test func `a JSON line has a server's TLS version, clear text has none`() {
        for version in TLSVersion.allCases {
            let text = line(.json, LoggedRequest()) { $0.upstreamTLS = version }
            #expect(text.contains(#""upstream_tls":"TLSv\#(version.text)""#))
        }
        #expect(!line(.json, LoggedRequest()).contains("upstream_tls"))
    }

    @Test func `a combined line is what Apache would write`() {
        let request = LoggedRequest(
            method: "GET", target: "/a\"b", userAgent: "Agent \u{e9}", referer: "http://u:p@r/")
        #expect(
            line(.combined, request, full) == #"""
                127.0.0.1 - - [21/Nov/2026:04:40:13 +0000] "GET /a\"b HTTP/1.1" 502 3456 \#
                "http://***@r/" "Agent \xc3\xa9" 0000000000000abc pin_mismatch \#
                queue_us=0 dns_us=1 connect_us=20 tls_us=300 first_byte_us=400 body_us=60 \#
                upstream=[2001:db8::1]:443 reused=false

                """#)
        let empty = LoggedRequest(method: "", target: "")
        let least = line(.combined, empty) { record in
            record.counted.status = 0
            record.version = nil
        }
        #expect(
            least == #"""
                127.0.0.1 - - [21/Nov/2026:04:40:13 +0000] "-" - - "-" "-" \#
                0000000000000abc -

                """#)
    }

    @Test func `a combined line of a request in a tunnel has its host`() {
        let session = ClientSession(
            version: .tls13, cipherSuite: "AES", subject: nil,
            inTunnelTo: BoundAuthority(host: "a.test", port: 8443))
        let request = LoggedRequest(method: "GET", target: "/a?b")
        let text = line(.combined, request, session: session)
        #expect(text.contains(#""GET https://a.test:8443/a?b HTTP/1.1" "#), "\(text)")
        // A client that wrote a complete URL, or requests no path, has said it itself.
        for target in ["https://a.test:8443/", "*"] {
            let request = LoggedRequest(method: "OPTIONS", target: target)
            let text = line(.combined, request, session: session)
            #expect(text.contains("\"OPTIONS \(target) HTTP/1.1\" "), "\(text)")
            #expect(text.hasSuffix(" - tunnel=\"a.test:8443\"\n"), "\(text)")
        }
    }

    @Test func `a combined line names the rule and the socket in quotation marks`() {
        let notes = FlowNotes(rule: Array("no \"x\"".utf8), way: Array("/run/a.sock".utf8))
        let text = line(.combined, LoggedRequest(), notes: notes) { record in
            record.setUpstream(.unnamed)
            record.isReused = true
        }
        #expect(
            text.hasSuffix(#" - upstream="unix:/run/a.sock" reused=true rule="no \"x\"""# + "\n"),
            "\(text)")
    }

    @Test func `only the phases that happened are in a line`() {
        let text = line(.json, LoggedRequest()) { record in
            record.phases.add(.firstByte, 7)
            record.phases.add(.firstByte, 5)
            record.isReused = true
        }
        #expect(text.contains(#""duration_us":0,"first_byte_us":12,"request_bytes""#), "\(text)")
        #expect(text.contains(#""reused":true"#))
    }

    @Test func `any bytes in the texts yield one line that a JSON parser accepts`() throws {
        let (_, texts) = LoggedRequest(
            method: "abcd", target: "0123456789", userAgent: "x", referer: "y"
        ).head
        let ring = FlowQueue(limits: FlowQueueLimits())
        defer { ring.deallocate() }
        var formatter = AccessLogFormatter(format: .json, labels: LoggedRequest.labels)
        for first in UInt8.min...UInt8.max {
            var bytes = [UInt8](repeating: first, count: 64)
            bytes[7] = first &+ 13
            _ = ring.push(LoggedRequest.record(), head: bytes.span, texts)
            var output = LineBuffer(capacity: 4096)
            _ = ring.drain(upTo: ring.headPosition) { formatter.append($0, to: &output) }
            let line = Data(output.bytes)
            #expect(line.count(where: { $0 == UInt8(ascii: "\n") }) == 1)
            let object = try JSONSerialization.jsonObject(with: line) as? [String: Any]
            #expect(object?["client"] as? String == "127.0.0.1:5000")
        }
    }

    @Test func `a reason beyond the table is other`() {
        let text = line(.json, LoggedRequest()) { $0.counted.failure = 2 }
        #expect(text.contains("\"reason\":\"other\""))
    }
}
