import Documents
import HTTPCore

extension FuzzTarget {
    func checkJSON(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        var refusal: DocumentError?
        do throws(DocumentError) {
            try JSONValidator.validate(bytes, limits: .fuzzing)
        } catch { refusal = error }
        let value: DocumentValue
        do throws(DocumentError) {
            value = try JSONDocument.value(of: bytes, limits: .fuzzing)
        } catch {
            guard error == refusal else {
                throw FuzzCheckError("refused with \(error), checked alone with \(refusal as Any)")
            }
            return false
        }
        if let refusal { throw FuzzCheckError("read, but refused by the check: \(refusal)") }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw FuzzCheckError("read, but not UTF-8")
        }
        try value.checkLimits()
        let text = try writtenJSON(value)
        guard try reading({ () throws(DocumentError) in try JSONDocument.value(of: text) }) == value
        else { throw FuzzCheckError("read otherwise after writing") }
        try checkReader(bytes)
        return true
    }

    /// The reader of small texts reads what is within the limits here, and reads it again.
    private func checkReader(_ bytes: [UInt8]) throws(FuzzCheckError) {
        let value: JSONValue
        let again: JSONValue
        do throws(JSONSyntaxError) {
            value = try JSONReader.read(bytes[...])
            again = try JSONReader.read(Array(value.text.utf8)[...])
        } catch {
            throw FuzzCheckError("read, but not by the reader of small texts: \(error)")
        }
        guard again == value else { throw FuzzCheckError("\(value), then \(again)") }
    }

    /// A query string of the value in a JSON text. Its names and texts are read again; nested
    /// arrays and numbers cannot be distinguished in it.
    func checkQueryString(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let value: DocumentValue
        let text: String
        let pairs: [QueryString.Pair]
        do throws(DocumentError) {
            value = try JSONDocument.value(of: bytes, limits: .fuzzing)
            text = try QueryString.encode(value, limits: .fuzzing)
            pairs = try QueryString.pairs(value, limits: .fuzzing)
        } catch { return false }
        let allowed = Set("-._~/?=&%".utf8)
        guard
            text.utf8.allSatisfy({
                allowed.contains($0) || UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0
                    || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0
                    || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0
            })
        else { throw FuzzCheckError("a character that is not escaped: \(text)") }
        guard text.utf8.count <= DocumentLimits.fuzzing.output else {
            throw FuzzCheckError("\(text.utf8.count) bytes were written")
        }
        let joined = pairs.map { pair in
            let name = QueryString.escape(pair.name)
            return pair.text.map { "\(name)=\(QueryString.escape($0))" } ?? name
        }
        guard joined.joined(separator: "&") == text else {
            throw FuzzCheckError("the pairs are not the query string")
        }
        // What was written is a form: a value, or names that contradict one another.
        _ = try? FormReader.value(of: Array(text.utf8), limits: .fuzzingAgain)
        return true
    }
}

/// The value as JSON.
func writtenJSON(_ value: DocumentValue) throws(FuzzCheckError) -> [UInt8] {
    try reading { () throws(DocumentError) in
        var writer = JSONWriter(limits: .fuzzingAgain)
        try value.replay(into: &writer)
        return try writer.finish()
    }
}

/// What must not be refused.
func reading<Result>(
    _ body: () throws(DocumentError) -> Result
) throws(FuzzCheckError) -> Result {
    do throws(DocumentError) { return try body() } catch {
        throw FuzzCheckError("refused after it was read: \(error)")
    }
}
