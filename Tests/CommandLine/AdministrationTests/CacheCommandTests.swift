import Documents
import Testing

@testable import pinfold

@Suite("A sitemap")
struct SitemapTests {
    private func read(_ text: String) throws -> Sitemap { try Sitemap(Array(text.utf8)) }

    @Test func `the pages of a urlset are found in order`() throws {
        let sitemap = try read(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
              xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
              <url><loc> http://a.test/?x=1&amp;y=2 </loc><lastmod>2026-11-29</lastmod>
                <image:image><image:loc>http://a.test/i.png</image:loc></image:image></url>
              <url><loc><![CDATA[http://a.test/b]]></loc></url>
              <url><priority>1</priority></url>
            </urlset>
            """)
        #expect(sitemap.pages == ["http://a.test/?x=1&y=2", "http://a.test/b"])
        #expect(sitemap.sitemaps.isEmpty)
    }

    @Test func `an index lists other sitemaps`() throws {
        let sitemap = try read(
            "<s:sitemapindex xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9'>"
                + "<s:sitemap><s:loc>http://a.test/1.xml.gz</s:loc></s:sitemap></s:sitemapindex>")
        #expect(sitemap.sitemaps == ["http://a.test/1.xml.gz"])
        #expect(sitemap.pages.isEmpty)
    }

    @Test(arguments: ["", "<urlset>", "<html></html>", "\u{1F}\u{8B}x"])
    func `what is none is refused`(text: String) {
        #expect(throws: Sitemap.SitemapError.self) { try read(text) }
    }

    @Test func `entities do not expand`() {
        #expect(throws: Sitemap.SitemapError.self) {
            try read(
                "<!DOCTYPE urlset [<!ENTITY a 'x'>]><urlset><url><loc>&a;</loc></url></urlset>")
        }
    }
}

@Suite("Warming the cache")
struct WarmTests {
    private func head(
        _ url: String, isForward: Bool = true, fields: [String] = []
    ) throws -> String {
        let target = WarmTarget(endpoint: .unnamed, isForward: isForward, fields: fields)
        return String(decoding: try target.request(url).head, as: UTF8.self)
    }

    @Test func `a forward listener gets the whole URL, and a reverse one the path`() throws {
        #expect(try head("https://a.test/x?y#z").hasPrefix("GET https://a.test/x?y HTTP/1.1\r\n"))
        #expect(
            try head("http://a.test")
                .hasPrefix("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n"))
        #expect(try head("http://a.test?q").hasPrefix("GET http://a.test/?q HTTP/1.1\r\n"))
        #expect(
            try head("http://a.test:81/x", isForward: false)
                .hasPrefix("GET /x HTTP/1.1\r\nHost: a.test:81\r\n"))
    }

    @Test(arguments: [
        "a.test/x", "ftp://a.test/", "http:///x", "http://u@a.test/", "http://a.test/ä b",
    ])
    func `what is no such URL is refused`(url: String) {
        #expect(throws: CommandError.self) { try head(url) }
    }

    @Test func `own fields take the place of those by default`() throws {
        let own = try head("http://a.test/", fields: ["Accept: text/html", "user-agent: x"])
        #expect(own.contains("\r\nAccept: text/html\r\nuser-agent: x\r\n"))
        #expect(!own.contains("*/*"))
        #expect(!own.contains("pinfold"))
    }

    @Test func `responses are counted by what Cache-Status says`() {
        var result = WarmResult()
        result.note(WarmResponse(status: 200, cacheStatus: "pinfold; fwd=uri-miss; stored"))
        result.note(WarmResponse(status: 200, cacheStatus: "other; hit, pinfold; hit; ttl=5"))
        result.note(
            WarmResponse(status: 200, cacheStatus: "pinfold; fwd=uri-miss; detail=no-store"))
        result.note(WarmResponse(status: 200, cacheStatus: nil))
        result.note(WarmResponse(status: 404, cacheStatus: "pinfold; fwd=uri-miss; stored"))
        #expect(result.stored == 1)
        #expect(result.present == 1)
        #expect(result.notStored == ["no-store": 1, "no reason": 1])
        #expect(result.failures == ["status 404": 1])
    }

    @Test func `progress has a bar where the total is known`() {
        let text = CountProgress.text(
            "URLs", 42, of: 100, failed: 3, milliseconds: 4200, hasBar: true)
        #expect(
            text
                == "[############                  ] 42 % 42 of 100 URLs, 10/s, 0:06 left, "
                + "3 failed")
        #expect(
            CountProgress.text("URLs", 5, of: nil, failed: 0, milliseconds: 0, hasBar: false)
                == "5 URLs, 0/s")
    }
}

@Suite("The view of stored responses")
struct EntryDatabaseTests {
    private func row(_ url: String, bytes: Int64?, hits: Int64 = 0) -> EntryRow {
        EntryRow(
            url: url, host: "a.test", method: "GET", status: 200, type: "text/html", bytes: bytes,
            hits: hits, stored: 1000, expires: 2000, lastUsed: nil, trust: "clear", tags: "x y",
            vary: nil, tiers: "memory")
    }

    private func ask(_ sql: String, seconds: Double = 10) throws -> [[String]] {
        let database = try EntryDatabase()
        try database.add(row("http://a.test/1", bytes: 10, hits: 2))
        try database.add(row("http://a.test/2", bytes: nil))
        var rows: [[String]] = []
        try database.query(sql, seconds: seconds) {
            rows.append($0)
        } row: {
            rows.append($0.map(\.text))
        }
        return rows
    }

    @Test func `a query gets names and rows`() throws {
        #expect(
            try ask("SELECT url, bytes FROM cache WHERE hits = 0;  ")
                == [["url", "bytes"], ["http://a.test/2", ""]])
        #expect(
            try ask("SELECT host, sum(bytes) AS n FROM cache GROUP BY host")
                == [["host", "n"], ["a.test", "10"]])
        #expect(try ask("WITH x AS (SELECT 1 AS a) SELECT a FROM x") == [["a"], ["1"]])
    }

    @Test(arguments: [
        "ATTACH 'x' AS y", "PRAGMA user_version", "PRAGMA journal_mode = WAL", "DELETE FROM entry",
        "INSERT INTO entry (url) VALUES (1)", "CREATE TABLE t (a)", "DROP VIEW cache", "BEGIN",
        "SELECT load_extension('x')", "SELECT * FROM sqlite_master", "VACUUM INTO 'x'",
        "SELECT 1; SELECT 2", "", "SELECT", "REINDEX", "CREATE TEMP TABLE t AS SELECT 1",
        "SELECT * FROM pragma_database_list",
    ])
    func `nothing but one SELECT of the view is carried out`(sql: String) {
        #expect(throws: EntryQueryError.self) { try ask(sql) }
    }

    @Test func `a query that takes too long is ended`() {
        let endless =
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
            + "SELECT count(*) FROM n"
        let error = #expect(throws: EntryQueryError.self) { try ask(endless, seconds: 0.01) }
        #expect(error == .timedOut(seconds: 0.01))
    }

    @Test func `a value has a largest size`() {
        #expect(throws: EntryQueryError.self) { try ask("SELECT length(zeroblob(1000000000))") }
    }

    @Test func `rows are written as a table, as CSV and as JSON`() {
        func text(_ format: TableFormat) -> String {
            var output = RowOutput(format)
            output.begin(["a", "b"])
            var text = output.add([.text("1"), .number("2")])
            text += output.add([.text("x,\"y\""), .null])
            return text + output.end()
        }
        #expect(text(.table) == "a      b\n1      2\nx,\"y\"\n")
        #expect(text(.csv) == "a,b\r\n1,2\r\n\"x,\"\"y\"\"\",\r\n")
        #expect(
            text(.json)
                == #"""
                [
                {"a":"1","b":2},
                {"a":"x,\"y\"","b":null}
                ]

                """#)
    }
}
