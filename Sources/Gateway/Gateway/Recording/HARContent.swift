import ContentCoding
import Documents
import HTTPCore
import PinfoldEngine

/// A body as HAR has it: without content codings, as text where it is one, and else in base64.
struct HARContent: Sendable {
    private let type: String
    /// What of it is kept, decoded unless ``isCoded``.
    private let bytes: [UInt8]
    private let isCut: Bool
    /// Whether its codings could not be undone.
    private let isCoded: Bool

    /// - Parameters:
    ///   - content: what is kept of it.
    ///   - head: that of its message; `nil` if it is not known.
    ///   - limit: the most bytes before and after decoding.
    init(_ content: KeptContent, of head: MaskedHead?, atMost limit: Int) {
        type = head?.value("content-type") ?? ""
        let kept = Array(content.bytes.prefix(limit))
        let isCut = content.isCut || content.bytes.count > limit
        let codings = ContentCoding.parse(
            head?.values("content-encoding").map { Array($0.utf8) } ?? [])
        guard let codings else {
            (bytes, self.isCut, isCoded) = (kept, isCut, true)
            return
        }
        guard !codings.isEmpty, !kept.isEmpty else {
            (bytes, self.isCut, isCoded) = (kept, isCut, false)
            return
        }
        guard let decoded = Self.decoded(kept, codings, isCut: isCut, atMost: limit) else {
            (bytes, self.isCut, isCoded) = (kept, isCut, true)
            return
        }
        (bytes, self.isCut, isCoded) = (decoded.bytes, decoded.isCut, false)
    }

    /// Undoes the codings, block by block up to the limit; `nil` if that is not possible.
    private static func decoded(
        _ content: [UInt8], _ codings: [ContentCoding], isCut: Bool, atMost limit: Int
    ) -> (bytes: [UInt8], isCut: Bool)? {
        do throws(ContentCodingError) {
            var decoder = try StreamDecoder(codings)
            decoder.feed(content)
            var bytes: [UInt8] = []
            while let block = try decoder.next() {
                let room = limit - bytes.count
                bytes += block.prefix(room)
                if block.count > room { return (bytes, true) }
            }
            if !isCut { try decoder.finish() }
            return (bytes, isCut)
        } catch {
            return nil
        }
    }

    /// A body that is not kept.
    static func omitted(of head: MaskedHead?, bytes: UInt64) -> DocumentValue {
        .dictionary([
            "size": .number(DocumentNumber(bytes)),
            "mimeType": .string(head?.value("content-type") ?? ""),
        ])
    }

    /// As the content of a response.
    /// - Parameter sentBytes: its size as it was sent.
    func content(sentBytes: UInt64) -> DocumentValue {
        let size = isCut || isCoded ? Int(clamping: sentBytes) : bytes.count
        var value: DocumentDictionary = [
            "size": .number(DocumentNumber(size)), "mimeType": .string(type),
        ]
        let saved = size - Int(clamping: sentBytes)
        if saved != 0 { value["compression"] = .number(DocumentNumber(saved)) }
        add(to: &value, encoding: "encoding")
        return .dictionary(value)
    }

    /// As the content of a request, for which HAR has no `encoding`.
    var posted: DocumentValue {
        var value: DocumentDictionary = ["mimeType": .string(type)]
        add(to: &value, encoding: "_encoding")
        return .dictionary(value)
    }

    private func add(to value: inout DocumentDictionary, encoding: String) {
        if let text {
            value["text"] = .string(text)
        } else {
            value["text"] = .string(Base64.encode(bytes))
            value[encoding] = .string("base64")
        }
        if isCut {
            value["_isCut"] = .boolean(true)
            value["comment"] = .string("the first \(bytes.count) bytes")
        }
        if isCoded { value["_isCoded"] = .boolean(true) }
    }

    // MARK: Text

    /// Its text in UTF-8; `nil` if it is none.
    private var text: String? {
        isCoded ? nil : HARText.text(of: bytes, type: type, isCut: isCut)
    }
}
