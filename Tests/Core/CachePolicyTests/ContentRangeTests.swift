import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Content-Range")
struct ContentRangeTests {
    private func parsed(_ text: String) -> ContentRange? {
        let bytes = Array(text.utf8)
        return ContentRange(ByteRange(from: 0, to: bytes.count), in: bytes.span)
    }

    @Test(
        arguments: [
            ("bytes 0-0/1", 0, 0, 1), ("bytes 2-5/10", 2, 5, 10), ("Bytes 0-9/10", 0, 9, 10),
            (
                "bytes 0-9223372036854775805/9223372036854775807", 0, 9_223_372_036_854_775_805,
                9_223_372_036_854_775_807
            ),
        ] as [(String, UInt64, UInt64, UInt64)])
    func `a range says which bytes of how many`(
        text: String, first: UInt64, last: UInt64, complete: UInt64
    ) {
        let range = parsed(text)
        #expect(range?.first == first && range?.last == last && range?.complete == complete)
        #expect(range?.count == last - first + 1)
    }

    @Test(
        arguments: [
            "", "bytes", "bytes 1", "bytes 1-", "bytes 1-2", "bytes 1-2/", "bytes 1-2/*",
            "bytes */10", "bytes 3-2/10", "bytes 0-10/10", "bytes 0-1/2 ", "lines 0-1/2",
            "bytes -1/2", "bytes 0-1/x",
            // No content is so long, and there is arithmetic with these numbers.
            "bytes 0-0/9223372036854775808", "bytes 0-0/18446744073709551614",
            "bytes 0-18446744073709551613/18446744073709551614",
            "bytes 0-18446744073709551614/18446744073709551615",
            "bytes 0-0/18446744073709551616",
        ])
    func `anything else is none`(text: String) {
        #expect(parsed(text) == nil)
    }
}
