import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("Where pin failures are reported to")
struct ReportSectionTests {
    private func text(_ url: String) -> String {
        """
        hosts: [{ match: [a.test], upgrade: https, pinsets: [p] }]
        pinsets:
          p:
            mode: none
            reportTo: \(url)
        """
    }

    @Test(arguments: [
        ("https://reports.example.com/pins", "https://reports.example.com/pins"),
        ("https://reports.example.com", "https://reports.example.com/"),
        ("HTTPS://Reports.Example.com:443/A?b=C", "https://reports.example.com/A?b=C"),
        ("https://reports.example.com?a=/b", "https://reports.example.com/?a=/b"),
        ("https://reports.example.com:8443/", "https://reports.example.com:8443/"),
        ("\"https://[::1]:8443/a\"", "https://[::1]:8443/a"),
        ("https://192.0.2.1/%41", "https://192.0.2.1/%41"),
    ])
    func `is an http or https URL`(written: String, printed: String) throws {
        let entry = try #require(try load(text(written)).pinsets.first)
        let destination = try #require(entry.reportTo)
        #expect("\(destination)" == printed)
        // The printed form parses to the same value.
        let again = try load(text("\"\(printed)\"")).pinsets.first
        #expect(again?.reportTo == destination)
        #expect(try warnings(of: text(written)) == [])
    }

    @Test func `is nowhere unless it is written`() throws {
        let entry = try load("pinsets: { p: { mode: none } }").pinsets.first
        #expect(entry != nil)
        #expect(entry?.reportTo == nil)
    }

    @Test(arguments: [
        "reports.example.com", "ftp://a.example/", "https://", "https:///pins",
        "https://user@a.example/", "https://a.example/#top", "https://a.example:0/",
        "https://a.example:99999/", "\"https://a.example/a b\"", "https://*.example.com/",
        "https://a.example/ä", "\"https://a.example/\\r\\nX: y\"",
    ])
    func `is refused in any other form`(url: String) {
        let found = errors(of: text(url))
        #expect(found.count == 1)
        #expect(
            found.allSatisfy {
                $0.hasPrefix("gateway.yaml:5: pinsets.p.reportTo: ")
                    && $0.hasSuffix(
                        "expected an http or https URL such as https://reports.example.com/pins")
            }, "\(found)")
    }

    @Test func `is not longer than a URL needs to be`() throws {
        let start = "https://a.example/"
        let longest = start + String(repeating: "a", count: 2048 - start.utf8.count)
        #expect(try load(text(longest)).pinsets.first?.reportTo != nil)
        #expect(errors(of: text(longest + "a")).count == 1)
    }

    @Test func `causes a warning if reports are sent in clear text`() throws {
        #expect(
            try warnings(of: text("http://a.example/")) == [
                "gateway.yaml:5: pinsets.p.reportTo: sends reports in clear text: anyone on the "
                    + "network path can read, change or drop them; use https"
            ])
    }
}
