import Foundation
import TestSupport
import Testing

@Suite("The page on serialization")
struct SerializationPageTests {
    /// The suites and sentences that its tables name.
    private static func named() throws -> [(suite: String, test: String)] {
        let page = try Checkout.page("Serialization")
        var named: [(suite: String, test: String)] = []
        for line in page.split(separator: "\n") where line.hasPrefix("| ") {
            var suite = ""
            for entry in line.split(separator: "|")[1].components(separatedBy: "; ") {
                let text = entry.trimmingCharacters(in: .whitespaces)
                guard let found = text.firstMatch(of: /^`(\w+Tests)`: (.+)$/) else {
                    if !suite.isEmpty { named.append((suite, text)) }
                    continue
                }
                suite = String(found.1)
                named.append((suite, String(found.2)))
            }
        }
        return named
    }

    @Test func `names existing tests only`() throws {
        let named = try Self.named()
        #expect(named.count > 30)
        let folder = Checkout.root.appending(path: "Tests/Client").path
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder)
        for (suite, test) in named {
            let file = try #require(files.first { $0.hasSuffix("/\(suite).swift") }, "\(suite)")
            let source = try Checkout.text("Tests/Client/" + file)
            #expect(source.contains("func `\(test)`"), "\(suite): \(test)")
        }
    }
}
