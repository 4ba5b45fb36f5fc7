/// Decodes chunked content, as far as it has arrived.
package func unchunked(_ text: some StringProtocol) -> String {
    var rest = Array(text.utf8)[...]
    var content: [UInt8] = []
    while let end = rest.firstIndex(of: 13), end > rest.startIndex,
        let count = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16), count > 0
    {
        content += rest[(end + 2)...].prefix(count)
        rest = rest[(end + 2)...].dropFirst(count + 2)
    }
    return String(decoding: content, as: UTF8.self)
}
