/// An encoding in which two values are equal if their bytes are: numbers by value, objects
/// regardless of the order of their members (RFC 8259; JSON Schema draft-07 §4.2.3).
enum CanonicalForm {
    /// Appends the form of a value.
    ///
    /// - Returns: the work it took, counting each value and each 16 bytes of text.
    @discardableResult
    static func append(_ index: Int, of instance: Instance, to output: inout [UInt8]) -> Int {
        var work = 0
        append(index, of: instance, to: &output, &work)
        return work
    }

    /// Recurses as deeply as the value, whose depth its reader has limited.
    private static func append(
        _ index: Int, of instance: Instance, to output: inout [UInt8], _ work: inout Int
    ) {
        let value = instance.values[index]
        work += 1 + Int(value.length) / 16
        switch value.kind {
        case .null: output.append(0)
        case .boolean: output.append(value.flag ? 2 : 1)
        case .number: append(Decimal(instance.bytes(value)), to: &output)
        case .string: append(4, instance.bytes(value), to: &output)
        case .array:
            append(5, count: value.count, to: &output)
            var element = index + 1
            while element < value.end {
                append(element, of: instance, to: &output, &work)
                element = Int(instance.values[element].end)
            }
        case .object: appendObject(index, of: instance, to: &output, &work)
        }
    }

    private static func appendObject(
        _ index: Int, of instance: Instance, to output: inout [UInt8], _ work: inout Int
    ) {
        let value = instance.values[index]
        append(6, count: value.count, to: &output)
        var members: [Int] = []
        members.reserveCapacity(Int(value.count))
        var member = index + 1
        while member < value.end {
            members.append(member)
            member = Int(instance.values[member].end)
        }
        members.sort { left, right in
            let left = instance.name(instance.values[left])
            let right = instance.name(instance.values[right])
            return left.lexicographicallyPrecedes(right)
        }
        work += members.count
        for member in members {
            append(4, instance.name(instance.values[member]), to: &output)
            append(member, of: instance, to: &output, &work)
        }
    }

    private static func append(_ number: Decimal, to output: inout [UInt8]) {
        append(number.isNegative ? 7 : 3, count: UInt32(number.digits.count), to: &output)
        output.append(contentsOf: number.digits)
        withUnsafeBytes(of: number.exponent) { output.append(contentsOf: $0) }
    }

    private static func append(
        _ tag: UInt8, _ bytes: UnsafeRawBufferPointer, to output: inout [UInt8]
    ) {
        append(tag, count: UInt32(bytes.count), to: &output)
        output.append(contentsOf: bytes)
    }

    private static func append(_ tag: UInt8, count: UInt32, to output: inout [UInt8]) {
        output.append(tag)
        withUnsafeBytes(of: count) { output.append(contentsOf: $0) }
    }
}
