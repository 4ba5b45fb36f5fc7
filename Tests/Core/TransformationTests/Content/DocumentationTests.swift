import Foundation
import PinfoldConfiguration
import TestSupport
import Testing

@testable import Transformation

/// The page Documents, whose tables are tests.
@Suite("The page on documents")
struct DocumentationTests {
    private func section(_ title: String) throws -> String {
        let page = try Checkout.page("Documents")
        return try #require(
            page.components(separatedBy: "\n## ").first { $0.hasPrefix(title + "\n") })
    }

    /// The two cells of a table's rows that begin with a value.
    private func rows(of text: String) -> [(left: String, right: String)] {
        text.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { line in
            let cells = line.dropFirst(2).components(separatedBy: " | ")
            return (cells[0], cells[1])
        }
    }

    /// What is between backticks.
    private func quoted(_ cell: String) -> [String] {
        cell.components(separatedBy: "`").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
    }

    @Test func `says what forms are as JSON, and JSON as a form`() throws {
        let tables = try section("Forms and JSON").components(separatedBy: "From JSON:")
        let reading = rows(of: tables[0])
        #expect(reading.count == 8)
        for row in reading {
            let form = quoted(row.left)[0]
            #expect(try translated(form, .form, .json).text == quoted(row.right)[0], "\(form)")
        }
        let writing = rows(of: tables[1])
        #expect(writing.count == 4)
        for row in writing {
            let json = quoted(row.left)[0]
            let form = quoted(row.right).first ?? ""
            #expect(try translated(json, .json, .form).text == form, "\(json)")
        }
    }

    @Test func `says what forms with arrays by index are as JSON, and the other way`() throws {
        let rows = try rows(of: section("Arrays by index"))
        #expect(rows.count == 5)
        for row in rows {
            let form = quoted(row.left)[0]
            do throws(TransformationError) {
                let made = try translated(form, .form, .json, arrays: .indices).text
                #expect(made == quoted(row.right).first, "\(form)")
                let again = try translated(made, .json, .form, arrays: .indices).text
                #expect(!row.left.hasSuffix("`") || again.removingPercentEncoding == form)
            } catch {
                #expect(row.right.contains("refused: \(error.detail)"), "\(form)")
            }
        }
    }

    @Test func `says what multipart content is as JSON`() throws {
        let rows = try rows(of: section("Multipart content and JSON"))
        #expect(rows.count == 6)
        for row in rows {
            var content = ""
            for part in row.left.components(separatedBy: ", `name=") {
                let words = quoted(part.hasPrefix("`") ? part : "`name=" + part)
                content += "--b\r\nContent-Disposition: form-data; \(words[0])\r\n\r\n"
                content += (words.count > 1 ? words[1] : "") + "\r\n"
            }
            content += "--b--\r\n"
            do throws(TransformationError) {
                let type = "multipart/form-data; boundary=b"
                let made = try translated(content, .multipart, .json, type: type)
                #expect(made.text == quoted(row.right).first, "\(row.left)")
            } catch {
                #expect(row.right.contains("refused: \(error.detail)"), "\(row.left)")
            }
        }
    }

    @Test func `says which types are translated`() throws {
        let rows = try rows(of: section("Formats"))
        #expect(rows.count == BodyFormat.allCases.count)
        for row in rows {
            let format = try #require(BodyFormat(rawValue: quoted(row.left)[0]))
            var rules = RequestRules()
            rules.body = RequestBodyRules(from: format, to: format == .json ? .plist : .json)
            let translation = try #require(RequestTranslation(rules))
            let types = quoted(row.right)
            #expect(types.first == format.document.mediaTypes[0])
            #expect(types.count >= format.document.mediaTypes.count)
            for type in types {
                let type = type.replacing("*", with: "x")
                #expect(try translation.applies(toContentType: type), "\(type)")
            }
        }
    }

    @Test func `names tests that there are`() throws {
        var named = 0
        let rows = try section("AFNetworking's rules in the gateway").split(separator: "\n")
        for row in rows where row.hasPrefix("| ") {
            var suite = ""
            let cell = row.components(separatedBy: " | ").last ?? ""
            for entry in cell.dropLast(2).components(separatedBy: "; ") {
                var test = entry[...]
                if let found = entry.firstMatch(of: #/^`(\w+Tests)`: /#) {
                    suite = String(found.1)
                    test = entry[found.range.upperBound...]
                }
                guard !suite.isEmpty else { continue }
                let file = URL(filePath: #filePath).deletingLastPathComponent()
                    .appending(path: "\(suite).swift")
                let source = try String(contentsOf: file, encoding: .utf8)
                #expect(source.contains("func `\(test)`"), "\(suite): \(test)")
                named += 1
            }
        }
        #expect(named == 12)
    }
}
