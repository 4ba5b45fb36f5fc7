import Foundation
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("Access log: chosen fields")
struct AccessLogFieldsTests {
    private func line(
        _ fields: [AccessLogField], _ request: LoggedRequest = LoggedRequest(),
        session: ClientSession? = nil, notes: FlowNotes = FlowNotes(),
        _ change: (inout FlowRecord) -> Void = { _ in }
    ) -> String {
        var record = LoggedRequest.record(0xabc)
        change(&record)
        let ring = FlowQueue(limits: FlowQueueLimits())
        defer { ring.deallocate() }
        let (bytes, texts) = request.head
        _ = ring.push(record, head: bytes.span, texts, session: session, notes: notes)
        var formatter = AccessLogFormatter(
            format: .json, fields: fields, labels: LoggedRequest.labels)
        var output = LineBuffer(capacity: 16_384)
        _ = ring.drain(upTo: ring.headPosition) { formatter.append($0, to: &output) }
        return String(decoding: output.bytes, as: UTF8.self)
    }

    private func full(_ record: inout FlowRecord) {
        record.counted.status = 502
        record.counted.failure = 0
        record.counted.notStored = 2
        for phase in Phase.allCases { record.phases.add(phase, 7) }
        record.forwarded = .varyMiss
        record.trace = ExchangeTrace(
            id: TraceID(high: 1, low: 2), span: 3, parent: 0, isSampled: true)
        record.isIntercepted = true
        record.interceptionPass = .rejected
        record.inspection = .verified
        record.clientTLS = .tls12
        record.originalAddress = .loopbackV4
        record.originalPort = 443
        record.isReused = false
        record.upstreamVersion = .http2
        record.upstreamTLS = .tls13
        record.setUpstream(Endpoint(address: .loopbackV4, port: 443))
        record.sampleMillionths = 12_500
    }

    @Test func `every field can be chosen, and all of them are the line without a choice`() {
        let request = LoggedRequest(
            method: "POST", target: "http://u:p@h/x", userAgent: "curl/8", referer: "http://u@r/")
        let session = ClientSession(
            version: .tls12, cipherSuite: "AES", subject: "CN=a",
            inTunnelTo: BoundAuthority(host: "a.test", port: 8443))
        var notes = FlowNotes(
            steps: Array("decoded".utf8), rule: Array("one".utf8), reported: ["two"],
            user: Array("ann".utf8), way: Array("corp".utf8))
        notes.authority = Array("b.test:80".utf8)
        let all = line([], request, session: session, notes: notes, full)
        let known = AccessLogField.Known.allCases
        for field in known { #expect(all.contains("\"\(field.rawValue)\":"), "\(field)") }
        let chosen = known.map(AccessLogField.known)
        #expect(line(chosen, request, session: session, notes: notes, full) == all)
        // One by one, each is a member of that line.
        for field in known {
            let text = line([.known(field)], request, session: session, notes: notes, full)
            #expect(text.hasPrefix("{\"\(field.rawValue)\":") && text.hasSuffix("}\n"), "\(text)")
            #expect(all.contains(text.dropFirst().dropLast(2)), "\(text)")
        }
        #expect(line(chosen) == line([]))
    }

    @Test func `the fields are in the order in which they were chosen`() {
        let text = line([.known(.status), .known(.id), .known(.method), .known(.time)])
        #expect(
            text == """
                {"status":200,"id":"0000000000000abc","method":"GET",\
                "time":"2026-11-21T04:40:13.123Z"}

                """)
    }

    @Test func `a line of nothing that is known is an empty object`() {
        #expect(line([.known(.user), .request("x-a"), .known(.dns)]) == "{}\n")
    }

    @Test(
        arguments: zip(
            [UInt32(1_000_000), 10_000, 1, 500_000, 123_456, 999_999],
            ["1", "0.01", "0.000001", "0.5", "0.123456", "0.999999"]))
    func `a line has its share as a number`(millionths: UInt32, text: String) {
        let line = line([.known(.sample)]) { $0.sampleMillionths = millionths }
        #expect(line == "{\"sample\":\(text)}\n")
    }

    // MARK: Fields of heads

    private func values(
        _ fields: [AccessLogField], request: String = "", response: String = ""
    ) throws -> String {
        let chosen = try #require(HeadFields(fields))
        var notes = FlowNotes()
        notes.fields = chosen.collect(Array(request.utf8).span, Array(response.utf8))
        return line(fields, notes: notes)
    }

    @Test func `fields of both heads are found whatever the case of their names`() throws {
        let text = try values(
            [.response("content-type"), .request("x-b"), .request("x-a"), .request("x-c")],
            request: "GET http://h/ HTTP/1.1\r\nHost: h\r\nX-A: \t1 2 \r\nx-B:\r\n\r\n",
            response: "HTTP/1.1 200 OK\r\nCONTENT-TYPE: text/\"x\"\r\n")
        #expect(
            text == """
                {"response.content-type":"text/\\"x\\"","request.x-b":"","request.x-a":"1 2"}

                """)
    }

    @Test func `several lines are one value, and no field is found within another's`() throws {
        let text = try values(
            [.request("via"), .request("x")],
            request: "GET /x: HTTP/1.1\r\nVia: a\r\nX-Via: no\r\nXVia: via: no\r\nVia: b\r\n\r\n")
        #expect(text == "{\"request.via\":\"a, b\"}\n")
    }

    @Test func `userinfo in the URL of a field is masked`() throws {
        let text = try values(
            [.response("location"), .request("from")],
            request: "GET / HTTP/1.1\r\nFrom: a@b.test\r\n\r\n",
            response: "HTTP/1.1 302 Found\r\nLocation: https://u:p@h/\r\n")
        #expect(
            text == #"{"response.location":"https://***@h/","request.from":"a@b.test"}"# + "\n")
    }

    @Test(arguments: [0, 10, 500, 985, 1000, 1010, 1015, 1030])
    func `userinfo is masked where a value is cut within it`(count: Int) throws {
        let padding = String(repeating: "a", count: count)
        let url = "http://h/?\(padding)http://user:SECRET\(padding)@h/"
        let text = try values(
            [.request("x"), .response("location")], request: "GET / HTTP/1.1\r\nX: \(url)\r\n",
            response: "HTTP/1.1 302 Found\r\nLocation: \(url)\r\n")
        #expect(!text.contains("SEC"))
        #expect(text.contains("http://h/?"))
    }

    @Test func `the last line of a head that is cut is left out`() throws {
        let chosen = try #require(HeadFields([.response("a"), .response("location")]))
        let head = Array("HTTP/1.1 302 Found\r\nA: 1\r\nLocation: http://u:SEC".utf8)
        var notes = FlowNotes()
        notes.fields = chosen.collect([UInt8]().span, head, isAnswerCut: true)
        let text = line([.response("a"), .response("location")], notes: notes)
        #expect(text == "{\"response.a\":\"1\"}\n")
    }

    @Test func `values are bounded, each and all together`() throws {
        let long = String(repeating: "x", count: 3000)
        let names = (0..<AccessLogField.maximumOfHeads).map { "n\($0)" }
        let head = names.map { "\($0): \(long)\r\n\($0): \(long)\r\n" }.joined()
        let chosen = try #require(HeadFields(names.map(AccessLogField.request)))
        let fields = chosen.collect(Array(head.utf8).span, [])
        #expect(fields.count <= HeadFields.maximumBytes)
        // Each has its share: no field keeps another one out.
        let share = HeadFields.maximumBytes / names.count - 16
        fields.withUnsafeBytes { bytes in
            for name in names {
                let value = HeadFields.value(of: Array(name.utf8), in: .request, among: bytes)
                #expect(value.map { $0.count >= share } ?? false, "\(name)")
            }
            #expect(HeadFields.value(of: Array("n0".utf8), in: .response, among: bytes) == nil)
        }
        let one = chosen.collect(Array("n0: \(long)\r\n".utf8).span, [])
        one.withUnsafeBytes { bytes in
            let value = HeadFields.value(of: Array("n0".utf8), in: .request, among: bytes)
            #expect(value?.count == HeadFields.maximumValueBytes)
        }
    }

    @Test func `fields of a request do not keep those of the response out`() throws {
        let names = (0..<9).map { AccessLogField.request("n\($0)") }
        let long = String(repeating: "x", count: 2000)
        let text = try values(
            names + [.response("server")],
            request: (0..<9).map { "n\($0): \(long)\r\n" }.joined(), response: "Server: it\r\n")
        #expect(text.contains("\"response.server\":\"it\""))
    }

    @Test func `any bytes in a head yield a line that a JSON parser accepts`() throws {
        let chosen = try #require(HeadFields([.request("a"), .response("a")]))
        for byte in UInt8.min...UInt8.max {
            let head = Array("a:".utf8) + [byte, 0x40, byte] + Array("\r\nb".utf8) + [byte]
            var notes = FlowNotes()
            notes.fields = chosen.collect(head.span, head)
            let text = line([.request("a"), .response("a")], notes: notes)
            let object = try JSONSerialization.jsonObject(with: Data(text.utf8))
            #expect(object is [String: Any], "\(byte)")
        }
    }

    @Test func `nothing is looked for if no field of a head was chosen`() {
        #expect(HeadFields([]) == nil)
        #expect(HeadFields([.known(.time)]) == nil)
        #expect(HeadFields([.request("a")])?.needsResponse == false)
        #expect(HeadFields([.response("a")])?.needsResponse == true)
    }
}
