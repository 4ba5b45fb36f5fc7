import Documents
import Testing

@Suite("Text in HTML")
struct HTMLTextTests {
    /// Every character of ASCII, alone and before and after others.
    @Test func `has references in place of the four characters that mean something`() {
        let references = ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;"]
        for code in 0..<128 as Range<UInt8> {
            let character = String(Unicode.Scalar(code))
            let escaped = references[character] ?? character
            for (before, after) in [("", ""), ("a", "b"), ("ä", "\u{1F600}"), (" ", "\n")] {
                #expect(HTMLText.escaped(before + character + after) == before + escaped + after)
            }
        }
    }

    /// Together they are one character of Swift's, but two of a browser's.
    @Test(arguments: ["<", "&", "\""])
    func `has them even if a combining mark follows`(character: String) {
        #expect(HTMLText.escaped(character + "\u{338}").unicodeScalars.first == "&")
        #expect(HTMLText.escaped(character + "\u{338}").unicodeScalars.last == "\u{338}")
    }
}
