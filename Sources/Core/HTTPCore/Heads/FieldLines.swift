/// Complete field lines, one after the other: `name: value CRLF`, as they are written.
public enum FieldLines {
    /// Removes the lines of some fields in place.
    /// - Parameters:
    ///   - names: in lower case.
    ///   - each: is given the value of each line that is removed, without white space around it.
    /// - Returns: the size of what is left, in bytes.
    public static func remove(
        _ names: [StaticString], from lines: UnsafeMutableRawBufferPointer,
        each: (Span<UInt8>) -> Void = { _ in }
    ) -> Int {
        var (start, kept) = (0, 0)
        while start < lines.count {
            let end = lines[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? lines.count
            let line = UnsafeRawBufferPointer(rebasing: lines[start..<end])
            let span = line.octets
            if let name = names.first(where: { span.starts(withFieldName: $0) }) {
                var (first, last) = (name.utf8CodeUnitCount + 1, span.count)
                while last > first, span[last - 1] <= 0x20 { last -= 1 }
                while first < last, span[first] <= 0x20 { first += 1 }
                each(span.extracting(first..<last))
            } else {
                if kept < start {
                    UnsafeMutableRawBufferPointer(rebasing: lines[kept...]).copyMemory(from: line)
                }
                kept += line.count
            }
            start = end
        }
        return kept
    }
}

extension Span where Element == UInt8 {
    fileprivate func starts(withFieldName name: StaticString) -> Bool {
        count > name.utf8CodeUnitCount && starts(withLowercase: name)
            && self[name.utf8CodeUnitCount] == UInt8(ascii: ":")
    }
}
