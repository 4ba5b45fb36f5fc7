import PinfoldConfiguration

/// `response.image`.
extension ImageRules {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "accept", \.accept, byDefault: "all", reading: { $1.imageTypes() },
                text: { $0.map { YAMLText.list($0.map(\.rawValue)) } }),
            ConfigurationKey(
                "convert", \.convert, reading: { $1.imageConversions() },
                text: { conversions in
                    YAMLText.mapping(
                        conversions.map { NamedValue($0.from.rawValue, $0.to.rawValue) })
                }),
            .integer("maximumPixels", \.maximumPixels, in: 1...1 << 26),
            ConfigurationKey(
                "scale", \.scaleTo, table: ImageSize.table, empty: ImageSize(width: 1, height: 1)),
        ])
    }
}

/// `response.image.scale`.
extension ImageSize {
    fileprivate static var table: KeyTable<Self> {
        func pixels(
            _ name: String, _ place: WritableKeyPath<Self, Int>
        ) -> ConfigurationKey<Self> {
            .required(
                name, place, expected: "a number of pixels",
                reading: { $1.integer(in: 1...16_384) },
                text: { $0.description })
        }
        return KeyTable(keys: [pixels("width", \.width), pixels("height", \.height)])
    }
}

extension Field {
    fileprivate func imageTypes() -> [ImageType]? {
        guard let elements = list(of: "image types") else { return nil }
        if elements.isEmpty { fail("accepts nothing", expected: "image types") }
        var found: [ImageType] = []
        for element in elements {
            guard let type = element.choice(ImageType.self) else { continue }
            if found.contains(type) {
                element.fail("is listed twice", expected: "each once")
            }
            found.append(type)
        }
        return found
    }

    fileprivate func imageConversions() -> [ImageConversion]? {
        named("image types to the types to convert them to")?.compactMap { entry in
            guard let from = ImageType(rawValue: entry.name) else {
                let types = ImageType.allCases.map(\.rawValue).joined(separator: ", ")
                entry.failName(
                    "\(quoted(entry.name)) is not valid", expected: "one of \(types)")
                return nil
            }
            guard let to = entry.value.choice(of: [ImageType.png, .jpeg]) else { return nil }
            if from == to { entry.value.fail("is converted to itself", expected: "another type") }
            return ImageConversion(from: from, to: to)
        }
    }
}
