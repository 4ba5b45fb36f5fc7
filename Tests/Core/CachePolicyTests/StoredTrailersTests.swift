import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Trailers of stored responses (RFC 9110 §6.5)")
struct StoredTrailersTests {
    /// The trailers of a chunked message with these lines.
    private func section(_ lines: [String]) throws -> TrailerSection {
        let message = Array(("0\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n").utf8)
        var decoder = ChunkedDecoder(
            limits: ChunkedLimits(trailerBytes: 1 << 16, trailerFields: 9000))
        var position = 0
        while !decoder.isComplete {
            switch try decoder.decode(message.span.extracting(position...)) {
            case .needMore(let consumed): position += consumed
            case .end, .data: break
            }
        }
        return try #require(decoder.trailerSection)
    }

    private func lines(_ section: TrailerSection?) -> [String]? {
        section.map {
            text($0.bytes).split(separator: "\r\n", omittingEmptySubsequences: true).map(
                String.init)
        }
    }

    private let fields = ["Date: \(date())", "Cache-Control: max-age=9", "ETag: \"a\""]

    private func stored(_ trailers: [String], _ fields: [String]? = nil) throws -> Stored? {
        let plain = Stored(fields ?? self.fields)
        guard let head = StoredTrailers.head(plain.head.span, with: try section(trailers)) else {
            return nil
        }
        return Stored(plain, head: head)
    }

    @Test func `they are read as they were stored`() throws {
        let trailers = ["X-Sum: 1", "x-two:", "X-Two:  b "]
        let stored = try #require(try stored(trailers))
        #expect(lines(StoredTrailers.section(of: stored.head.span)) == trailers)
        #expect(text(stored.head).hasSuffix("\r\n\r\nX-Sum: 1\r\nx-two:\r\nX-Two:  b \r\n"))
        #expect(StoredTrailers.section(of: Stored(fields).head.span) == nil)
        #expect(StoredHead.withoutTrailers(stored.head) == Stored(fields).head)
    }

    @Test func `the metadata is that of the head without them, and says that they are there`()
        throws
    {
        let stored = try #require(try stored(["ETag: \"b\"", "X-Sum: 1"]))
        let plain = Stored(fields)
        #expect(stored.metadata.flags == plain.metadata.flags.union(.hasTrailers))
        #expect(stored.metadata.entityTag == plain.metadata.entityTag)
        let added = plain.metadata.withTrailers(headBytes: stored.head.count)
        #expect(added == stored.metadata)
    }

    @Test func `no form of a hit has them among its fields`() throws {
        let stored = try #require(try stored(["X-Sum: 1"]))
        let plain = Stored(fields)
        let forms: [HitForm] = [
            .full, .headOnly, .notModified, .partial(first: 0, last: 1, complete: 100),
            .rangeNotSatisfiable(complete: 100),
        ]
        for form in forms {
            let hit = CacheHit(form: form, age: 1, timeToLive: 2, stale: nil)
            let heads = [stored, plain].map { one in
                written { append(hit, one.metadata, one.head, nil, to: &$0) }
            }
            #expect(heads[0] == heads[1])
        }
    }

    @Test func `what must not come from trailers, or is not for all, is left out`() throws {
        let trailers = [
            "Content-Length: 5", "Set-Cookie: a=b", "X-Own: 1", "X-Sum: 1", "Vary: *", "Age: 7",
            "Transfer-Encoding: x", "Y-Own: 2",
        ]
        let qualified = fields + ["Cache-Control: private=\"x-own\", no-cache=Y-OWN"]
        let stored = try #require(try stored(trailers, qualified))
        #expect(lines(StoredTrailers.section(of: stored.head.span)) == ["X-Sum: 1"])
        #expect(try self.stored(["Vary: *"]) == nil)
        #expect(try self.stored(["X-Own: 1"], qualified) == nil)
    }

    @Test func `too many are not stored`() throws {
        let size = ChunkedLimits().trailerBytes
        #expect(try stored(["X: " + String(repeating: "x", count: size)]) == nil)
        #expect(try stored(["X: " + String(repeating: "x", count: size / 2)]) != nil)
    }

    @Test func `they are announced by name`() throws {
        let section = try section(["X-Sum: 1", "Vary: *", "X-Two: 2"])
        let announcement = written {
            StoredTrailers.appendAnnouncement(of: section, to: &$0)
        }
        #expect(announcement == "Trailer: X-Sum, X-Two\r\n")
        #expect(announcement.utf8.count <= StoredTrailers.announcementBytes(of: section))
    }

    @Test(arguments: [
        "\r\n", "\r\nX", "\r\nX\r\n", "\r\nX: 1", "\r\nX: 1\r\n\r\n", "\r\n\r\nX: 1\r\n",
        "\r\nX: 1\r\n\r\nY: 1\r\n", "\r\n: 1\r\n", "\nX: 1\r\n",
    ])
    func `a head that ends in anything else is damaged`(rest: String) {
        let bytes = Stored(fields).head + Array(rest.utf8)
        let metadata = StoredMetadata(
            storedHead: bytes.span,
            times: StoredTimes(requestTime: 0, responseTime: 0, initialAge: 0), hasQuery: false,
            options: PolicyOptions())
        #expect(metadata == nil)
        #expect(StoredTrailers.section(of: bytes.span) == nil)
    }

    @Test func `they stay with the content that a 304 confirms`() throws {
        let stored = try #require(try stored(["X-Sum: 1", "X-Own: 2"]))
        func freshen(_ update: [String]) throws -> FreshenedResponse {
            let response = Response(update, status: 304)
            let request = Request()
            let fresh = FreshenedResponse(
                merging: stored.metadata, storedHead: stored.head.span, with: response.head,
                in: response.bytes.span, request: request.head, in: request.bytes.span,
                requestTime: start, responseTime: start, hasQuery: false,
                options: PolicyOptions())
            return try #require(fresh)
        }
        let fresh = try freshen(["X-New: 1", "X-Sum: 5"])
        #expect(lines(StoredTrailers.section(of: fresh.head.span)) == ["X-Sum: 1", "X-Own: 2"])
        #expect(fresh.metadata.flags.contains(.hasTrailers))
        #expect(text(fresh.head).contains("X-New: 1\r\n"))
        let own = try freshen(["Cache-Control: max-age=9, private=\"x-own\""])
        #expect(lines(StoredTrailers.section(of: own.head.span)) == ["X-Sum: 1"])
        let none = try freshen(["Cache-Control: max-age=9, private=\"x-own, x-sum\""])
        #expect(!none.metadata.flags.contains(.hasTrailers))
    }
}
