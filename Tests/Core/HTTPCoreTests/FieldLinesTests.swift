import HTTPCore
import Testing

@Suite("Field lines that are removed")
struct FieldLinesTests {
    /// What is left, and the values that were removed.
    private static func remove(
        _ names: [StaticString], from text: String
    ) -> (left: String, values: [String]) {
        var bytes = Array(text.utf8)
        var values: [String] = []
        let count = bytes.withUnsafeMutableBytes { memory in
            FieldLines.remove(names, from: memory) { value in
                values.append(value.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
            }
        }
        return (String(decoding: bytes[..<count], as: UTF8.self), values)
    }

    @Test(
        arguments: [
            ("", "", []),
            ("b: 1\r\n", "b: 1\r\n", []),
            ("a: 1\r\n", "", ["1"]),
            ("A: 1\r\nb: 2\r\n", "b: 2\r\n", ["1"]),
            ("b: 2\r\na: 1\r\n", "b: 2\r\n", ["1"]),
            ("b: 2\r\na: 1\r\nb: 3\r\na:2\r\n", "b: 2\r\nb: 3\r\n", ["1", "2"]),
            ("a:\r\na:  \t \r\na: x y \r\n", "", ["", "", "x y"]),
            // Names that only begin alike, and values that look like a line.
            ("ab: 1\r\nb: a: 1\r\n", "ab: 1\r\nb: a: 1\r\n", []),
            ("c-d: 1\r\nC-D-e: 2\r\n", "C-D-e: 2\r\n", ["1"]),
            ("HTTP/2.0 200 \r\na: 1\r\n", "HTTP/2.0 200 \r\n", ["1"]),
            ("a", "a", []),
        ] as [(String, String, [String])])
    func `by name, in any case`(text: String, left: String, values: [String]) {
        let found = Self.remove(["a", "c-d"], from: text)
        #expect(found.left == left)
        #expect(found.values == values)
    }
}
