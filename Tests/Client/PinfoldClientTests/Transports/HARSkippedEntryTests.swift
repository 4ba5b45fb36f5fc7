import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("An unusual entry of an HTTP Archive")
struct HARSkippedEntryTests {
    /// What browsers and others write besides exchanges of HTTP.
    private static let unusual: [(String, String)] = [
        ("{}", "log.entries[1] has no valid request.method"),
        ("7", "log.entries[1] has no valid request.method"),
        (
            #"{"request": {"method": "GET", "url": "x"}}"#,
            "log.entries[1] (GET x) has no valid request.url"
        ),
        (
            #"{"request": {"method": "A B", "url": "http://a.test/"}}"#,
            "log.entries[1] (A B http://a.test/) has no valid request.method"
        ),
        (
            #"{"request": {"method": "GET", "url": "http://a.test/"}}"#,
            "log.entries[1] (GET http://a.test/) has no valid response.status"
        ),
        (
            #"{"request": {"method": "GET", "url": "wss://a.test/"}, "response": {"status": 101}}"#,
            "log.entries[1] (GET wss://a.test/) has no http or https URL"
        ),
        (
            #"{"request": {"method": "GET", "url": "data:image/png;base64,AA"}}"#,
            "log.entries[1] (GET data:image/png;base64,AA) has no http or https URL"
        ),
        (
            #"{"request": {"method": "GET", "url": "http://a.test/"}, "response": {"status": 0}}"#,
            "log.entries[1] (GET http://a.test/) has no response: its response.status is 0"
        ),
        (
            """
            {"request": {"method": "GET", "url": "http://a.test/"}, "response": {"status": 101}}
            """,
            "log.entries[1] (GET http://a.test/) has no final response: "
                + "its response.status is 101"
        ),
        (
            """
            {"request": {"method": "GET", "url": "http://a.test/"},
            "response": {"status": 200, "content": {"text": "?", "encoding": "base64"}}}
            """, "log.entries[1] (GET http://a.test/) has no valid response.content"
        ),
        (
            """
            {"request": {"method": "GET", "url": "http://a.test/"},
            "response": {"status": 200, "content": {"size": 9, "mimeType": "image/png"}}}
            """,
            "log.entries[1] (GET http://a.test/) is without the response's content of 9 "
                + "bytes: it has no response.content.text"
        ),
    ]

    @Test(arguments: unusual)
    func `is left out if it cannot be used, with the reason, and the rest is kept`(
        entry: String, reason: String
    ) async throws {
        let usable = { (name: String) in
            """
            {"request": {"method": "GET", "url": "http://b.test/\(name)"},
            "response": {"status": 200, "content": {"text": "\(name)"}}}
            """
        }
        let text = #"{"log": {"entries": [\#(usable("1")), \#(entry), \#(usable("2"))]}}"#
        let archive = try HARArchive(Array(text.utf8))
        #expect(archive.entries.map(\.request.url) == ["http://b.test/1", "http://b.test/2"])
        #expect(archive.skipped.map(\.description) == [reason])
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        var configuration = SessionConfiguration.patient
        configuration.transport = HARReplayer(archive)
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        let response = try await session.data(for: try HTTPRequest(.get, "http://b.test/2"))
        #expect(response.text == "2")
        // Whoever asks for what was left out learns of it.
        guard archive.skipped[0].url == "http://a.test/", archive.skipped[0].method == "GET"
        else { return }
        let error = await failure {
            _ = try await session.data(for: try HTTPRequest(.get, "http://a.test/"))
        }
        let why = archive.skipped[0].reason.description
        #expect(
            error?.explanation
                == "the archive has no response to GET http://a.test/: log.entries[1] \(why)")
    }

    @Test(arguments: [
        ("HEAD", 200), ("GET", 204), ("GET", 304), ("GET", 302),
    ])
    func `is kept if there is no content to be had`(
        method: String, status: Int
    ) throws {
        let text = """
            {"log": {"entries": [{"request": {"method": "\(method)", "url": "http://a.test/"},
            "response": {"status": \(status), "content": {"size": 9}}}]}}
            """
        let archive = try HARArchive(Array(text.utf8))
        #expect(archive.entries.map(\.response.status.code) == [status])
        #expect(archive.skipped.isEmpty)
    }

    @Test func `does not fill the message with its address`() throws {
        let url = "data:text/plain," + String(repeating: "a", count: 10_000)
        let text = #"{"log": {"entries": [{"request": {"method": "GET", "url": "\#(url)"}}]}}"#
        let skipped = try #require(try HARArchive(Array(text.utf8)).skipped.first)
        #expect(skipped.url == url)
        #expect(skipped.description.count < 300)
    }
}
