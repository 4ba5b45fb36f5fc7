import ContentCoding
import Documents
import JSONSchema
import Transformation

extension FuzzTarget {
    /// The first byte selects the codings that the rest is in.
    func checkCodings(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let all: [[ContentCoding]] = [
            [.gzip], [.deflate], [.brotli], [.gzip, .gzip], [.brotli, .deflate], [.zstd],
            [.zstd, .gzip],
        ]
        let codings = all[Int(bytes.first ?? 0) % all.count]
        let maximum = 1 << 16
        let coded = Array(bytes.dropFirst())
        let streamed = try Arrivals.read(coded) { ends in
            Self.decoded(coded, ends, codings, maximum: maximum)
        }
        let content: [UInt8]
        do throws(ContentCodingError) {
            content = try ContentCodings.decode(coded, codings: codings, maximum: maximum)
        } catch {
            guard streamed == nil else {
                throw FuzzCheckError("refused with \(error), but decoded as it arrives")
            }
            return false
        }
        guard content == streamed else {
            throw FuzzCheckError("other content as it arrives: \(streamed as Any)")
        }
        guard content.count <= maximum else {
            throw FuzzCheckError("\(content.count) bytes came out")
        }
        do throws(ContentCodingError) {
            for coding in codings {
                let encoded = try ContentCodings.encode(content, as: coding)
                let again = try ContentCodings.decode(encoded, codings: [coding], maximum: maximum)
                guard again == content else { throw .tooLarge(maximum: 0) }
            }
        } catch {
            throw FuzzCheckError("other content after encoding: \(error)")
        }
        return true
    }

    /// Content decoded as it arrives; `nil` if it is refused or too large. Which of the two comes
    /// first depends on how it arrives.
    private static func decoded(
        _ bytes: [UInt8], _ ends: [Int], _ codings: [ContentCoding], maximum: Int
    ) -> [UInt8]? {
        var content: [UInt8] = []
        do throws(ContentCodingError) {
            var decoder = try StreamDecoder(codings)
            var start = 0
            for end in ends {
                decoder.feed(Array(bytes[start..<end]))
                while let block = try decoder.next() {
                    content += block
                    if content.count > maximum { return nil }
                }
                start = end
            }
            try decoder.finish()
        } catch { return nil }
        return content
    }

    /// A schema, a NUL, and what is validated against it.
    func checkSchema(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let end = bytes.firstIndex(of: 0) ?? bytes.count
        let content = Array(bytes[min(end + 1, bytes.count)...])
        let schema: JSONSchema
        do throws(JSONSchemaError) {
            schema = try JSONSchema(Array(bytes[..<end]))
        } catch { return false }
        let first = violation(of: schema, content)
        guard first == violation(of: schema, content) else {
            throw FuzzCheckError("another answer the second time")
        }
        guard let first else { return true }
        let shown = first.excerpt.count + (first.location?.utf8.count ?? 0)
        guard shown <= TransformationError.maximumExcerptBytes + 40 else {
            throw FuzzCheckError("\(shown) bytes of the content are shown")
        }
        guard String(validating: first.excerpt, as: UTF8.self) != nil else {
            throw FuzzCheckError("half a character is shown")
        }
        return true
    }

    private func violation(
        of schema: JSONSchema, _ content: [UInt8]
    ) -> TransformationError? {
        content.withUnsafeBytes { bytes in
            do throws(TransformationError) {
                try schema.check(bytes)
                return nil
            } catch { return error }
        }
    }
}
