/// The keys of one mapping of the configuration, each declared once. Reading, the check for unknown
/// keys, the printing of the effective configuration, and the tests of `config/pinfold.yaml` and of
/// the Configuration page all use this table.
///
/// To add a key, add a property with its default to the snapshot, and a line to the table. The
/// tests then require the key in the file and on the page.
struct KeyTable<Values> {
    /// The keys, in the order in which they are read, reported and printed.
    let keys: [ConfigurationKey<Values>]
    /// Keys that are known but not yet supported.
    var later: [String] = []

    /// The names of the supported keys.
    var names: [String] { keys.map(\.name) }

    /// The keys and values as a flow mapping, `{ a: 1, b: 2 }`, or `nil` if none is printed.
    func flow(_ values: Values) -> String? {
        let pairs = keys.compactMap { key in key.text(values).map { "\(key.name): \($0)" } }
        return pairs.isEmpty ? nil : "{ \(pairs.joined(separator: ", ")) }"
    }

    /// The keys as documented, where keys of nested mappings are `mapping.key`.
    ///
    /// - Parameter defaults: The values that are printed as defaults of keys without an explicit
    ///   one.
    func described(_ defaults: Values) -> [DescribedKey] {
        keys.flatMap { $0.described(defaults) }
            + later.map { DescribedKey(name: $0, byDefault: .notYetSupported) }
    }
}

/// A key as documented.
struct DescribedKey {
    /// The default of a key.
    enum Default {
        case yaml(String)
        case words(String)
        /// There is none: the key is rejected.
        case notYetSupported
    }

    /// The name within its section, such as `perClient.connections`.
    var name: String
    var byDefault: Default

    /// The same key within a mapping.
    func within(_ mapping: String) -> DescribedKey {
        DescribedKey(name: "\(mapping).\(name)", byDefault: byDefault)
    }
}

/// One key of a mapping.
struct ConfigurationKey<Values> {
    let name: String
    /// Reads the key's value from a section, or from `nil` if there is no section. An error is
    /// reported and leaves the default in place.
    var read: (_ reader: SnapshotReader, _ section: Section?, _ values: inout Values) -> Void
    /// The value as YAML, or `nil` if the key is not printed.
    private(set) var text: (Values) -> String?
    /// Prints the lines below the key, in place of a value on the same line, or `nil` if the key
    /// has such a value.
    var block: ((_ yaml: inout YAMLText, _ level: Int, _ values: Values) -> Void)?
    /// Whether the value is printed on the lines below the key, where it can be.
    var isBlock: (Values) -> Bool = { _ in true }
    /// The key with its default, or the keys of its mapping with theirs.
    var described: (_ defaults: Values) -> [DescribedKey]

    /// A key that is read together with other keys of its section.
    ///
    /// - Parameter byDefault: The default in words, or `nil` to show the default as printed.
    init(
        _ name: String, byDefault: String? = nil,
        readSection: @escaping (SnapshotReader, Section?, inout Values) -> Void,
        text: @escaping (Values) -> String?
    ) {
        self.name = name
        read = readSection
        self.text = text
        described = { defaults in
            let shown = DescribedKey.Default.yaml(text(defaults) ?? "none")
            return [DescribedKey(name: name, byDefault: byDefault.map { .words($0) } ?? shown)]
        }
    }

    /// A key that is read from its own value, or from `nil` if the key is missing.
    init(
        _ name: String, byDefault: String? = nil,
        read: @escaping (SnapshotReader, Field?, inout Values) -> Void,
        text: @escaping (Values) -> String?
    ) {
        self.init(
            name, byDefault: byDefault,
            readSection: { reader, section, values in read(reader, section?[name], &values) },
            text: text)
    }

    /// A key whose value is stored in a single property.
    ///
    /// - Parameters:
    ///   - reading: Converts the value. If it returns `nil`, the default stays.
    init<Value>(
        _ name: String, _ place: WritableKeyPath<Values, Value>, byDefault: String? = nil,
        reading: @escaping (SnapshotReader, Field) -> Value?, text: @escaping (Value) -> String?
    ) {
        self.init(
            name, byDefault: byDefault,
            read: { reader, field, values in
                guard let field, let value = reading(reader, field) else { return }
                values[keyPath: place] = value
            },
            text: { text($0[keyPath: place]) })
    }

    /// A mapping with its own table.
    ///
    /// - Parameters:
    ///   - isBlock: Whether it is printed with one line per key.
    ///   - defaults: The defaults of its keys, which may depend on the values read so far, or `nil`
    ///     for the property's initial values.
    init<Inner>(
        _ name: String, _ place: WritableKeyPath<Values, Inner>, table: KeyTable<Inner>,
        isBlock: Bool = false, defaults: ((Values) -> Inner)? = nil
    ) {
        let defaults = defaults ?? { $0[keyPath: place] }
        self.name = name
        read = { reader, section, values in
            values[keyPath: place] =
                reader.read(section?[name], by: table, over: defaults(values)).values
        }
        text = { table.flow($0[keyPath: place]) }
        if isBlock {
            block = { yaml, level, values in yaml.lines(level, table, values[keyPath: place]) }
        }
        described = { values in
            table.described(defaults(values)).map { $0.within(name) }
        }
    }
}

extension ConfigurationKey {
    /// An optional mapping, which is `nil` unless it is written.
    ///
    /// - Parameter empty: The defaults of its keys.
    init<Inner>(
        _ name: String, _ place: WritableKeyPath<Values, Inner?>, table: KeyTable<Inner>,
        empty: Inner
    ) {
        self.init(
            name,
            read: { reader, field, values in
                let (inner, section) = reader.read(field, by: table, over: empty)
                if section != nil { values[keyPath: place] = inner }
            },
            text: { $0[keyPath: place].map { table.flow($0) ?? "{}" } })
        described = { _ in table.described(empty).map { $0.within(name) } }
    }

    /// The same key, printed only under a condition.
    func printed(if isPrinted: @escaping (Values) -> Bool) -> Self {
        var key = self
        let text = text
        key.text = { isPrinted($0) ? text($0) : nil }
        return key
    }

    /// The same key for a type that contains the key's values.
    func lifted<Outer>(to place: WritableKeyPath<Outer, Values>) -> ConfigurationKey<Outer> {
        let key = self
        var lifted = ConfigurationKey<Outer>(
            name,
            readSection: { reader, section, outer in
                key.read(reader, section, &outer[keyPath: place])
            },
            text: { key.text($0[keyPath: place]) })
        if let block {
            lifted.block = { yaml, level, outer in block(&yaml, level, outer[keyPath: place]) }
            lifted.isBlock = { key.isBlock($0[keyPath: place]) }
        }
        lifted.described = { key.described($0[keyPath: place]) }
        return lifted
    }

    /// A required key.
    ///
    /// - Parameter expected: The expected value, for the error if the key is missing.
    static func required<Value>(
        _ name: String, _ place: WritableKeyPath<Values, Value>, expected: String,
        reading: @escaping (SnapshotReader, Field) -> Value?, text: @escaping (Value) -> String?
    ) -> Self {
        Self(
            name, byDefault: "required",
            readSection: { reader, section, values in
                guard let field = section?.required(name, expected: expected),
                    let value = reading(reader, field)
                else { return }
                values[keyPath: place] = value
            },
            text: { text($0[keyPath: place]) })
    }

    /// A duration, kept in milliseconds.
    static func milliseconds(
        _ name: String, _ place: WritableKeyPath<Values, Int64>, in range: ClosedRange<Int64>
    ) -> Self {
        Self(
            name, place, reading: { $1.milliseconds(in: range) }, text: Quantity.text(milliseconds:)
        )
    }

    /// A duration whose default comes from another mapping, which `byDefault` describes.
    static func milliseconds(
        _ name: String, _ place: WritableKeyPath<Values, Int64?>, in range: ClosedRange<Int64>,
        byDefault: String
    ) -> Self {
        Self(
            name, place, byDefault: byDefault, reading: { $1.milliseconds(in: range) },
            text: { $0.map(Quantity.text(milliseconds:)) })
    }

    /// A duration of whole seconds.
    static func seconds(
        _ name: String, _ place: WritableKeyPath<Values, Int64>, in range: ClosedRange<Int64>
    ) -> Self {
        Self(
            name, place, reading: { $1.seconds(in: range) },
            text: { Quantity.text(milliseconds: $0 * 1_000) })
    }

    /// A size in bytes.
    static func bytes(
        _ name: String, _ place: WritableKeyPath<Values, Int>, in range: ClosedRange<Int>
    ) -> Self {
        Self(name, place, reading: { $1.bytes(in: range) }, text: Quantity.text(bytes:))
    }

    /// A whole number.
    static func integer(
        _ name: String, _ place: WritableKeyPath<Values, Int>, in range: ClosedRange<Int>,
        byDefault: String? = nil
    ) -> Self {
        Self(
            name, place, byDefault: byDefault, reading: { $1.integer(in: range) },
            text: { $0.description })
    }

    /// A boolean.
    static func boolean(_ name: String, _ place: WritableKeyPath<Values, Bool>) -> Self {
        Self(name, place, reading: { $1.boolean() }, text: { $0.description })
    }

    /// One of the words of a type.
    static func choice<Value: RawRepresentable & CaseIterable>(
        _ name: String, _ place: WritableKeyPath<Values, Value>
    ) -> Self where Value.RawValue == String {
        Self(name, place, reading: { $1.choice() }, text: { $0.rawValue })
    }
}

extension SnapshotReader {
    /// Reads a mapping with its table. The section is returned for checks that involve several
    /// keys.
    ///
    /// - Parameters:
    ///   - values: The defaults.
    func read<Values>(
        _ field: Field?, by table: KeyTable<Values>, over values: Values
    ) -> (values: Values, section: Section?) {
        let section = field?.section(keys: table.names, later: table.later)
        return (read(section, by: table, over: values), section)
    }

    /// Reads a section whose keys have been checked.
    func read<Values>(
        _ section: Section?, by table: KeyTable<Values>, over values: Values
    ) -> Values {
        var values = values
        for key in table.keys { key.read(self, section, &values) }
        return values
    }
}
