import Documents

extension SchemaCheck {
    /// Whether all names of an object satisfy a schema, each as a string.
    mutating func namesHold(_ schema: Int, _ object: Int) -> Bool {
        let end = Int(instance.values[object].end)
        var member = object + 1
        while member < end {
            let value = instance.values[member]
            let name = instance.name(value)
            work -= 4 + name.count / 16
            guard !isExhausted, nameHolds(schema, name) else { return false }
            member = Int(value.end)
        }
        return true
    }

    /// Makes a name a separate value, to which every rule can be applied.
    private mutating func nameHolds(_ schema: Int, _ name: UnsafeRawBufferPointer) -> Bool {
        var check = SchemaCheck(nodes, Instance(string: name), bytes: 0)
        check.work = work
        let holds = check.holds(schema, 0)
        work = check.work
        return holds
    }
}
