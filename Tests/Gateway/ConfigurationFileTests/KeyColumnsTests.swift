import TestSupport
import Testing

@testable import Gateway

@Suite("The column of an error")
struct KeyColumnsTests {
    static let text = """
        hosts:
          - match: [a.test]
            tls: { minimum: "1.9", "roots": [] }
            tls-other: 1
        limits:
        """

    static let cases: [(line: Int, key: String, column: Int)] = [
        (1, "hosts", 1), (2, "hosts[0].match", 5), (2, "hosts[0]", 5),
        (3, "hosts[0].tls.minimum", 12), (3, "hosts[0].tls.roots", 29), (3, "hosts[0].tls", 5),
        (4, "hosts[0].tls", 5), (5, "", 1), (4, "another", 5),
    ]

    @Test(arguments: cases)
    func `is that of its key, or of the line's first character`(
        line: Int, key: String, column: Int
    ) throws {
        let folder = TemporaryFolder()
        try write(Self.text, to: "a.yaml", in: folder.path)
        var columns = KeyColumns(folder: folder.path)
        let found = columns.column(file: "a.yaml", line: line, key: key, problem: "is wrong")
        #expect(found == column)
    }

    @Test func `is what a syntax error says`() {
        var columns = KeyColumns(folder: "/nonexistent")
        let problem = "not valid YAML at column 17: a key has no colon"
        #expect(columns.column(file: "a", line: 3, key: "", problem: problem) == 17)
    }

    @Test func `is not known of a file that cannot be read, or has become shorter`() throws {
        let folder = TemporaryFolder()
        try write(Self.text, to: "a.yaml", in: folder.path)
        var columns = KeyColumns(folder: folder.path)
        #expect(columns.column(file: "b.yaml", line: 1, key: "hosts", problem: "") == nil)
        #expect(columns.column(file: "a.yaml", line: 99, key: "hosts", problem: "") == nil)
        #expect(columns.column(file: "a.yaml", line: 0, key: "hosts", problem: "") == nil)
    }
}
