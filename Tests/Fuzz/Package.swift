// swift-tools-version: 6.2
import PackageDescription

/// The fuzz targets with libFuzzer. `deploy/fuzz` makes the folder that this is built in: `Sources`
/// there are links to the folders of the repository, so that the product's package knows nothing of
/// it. All of Swift and C++ is instrumented, for coverage and with AddressSanitizer.
let swift: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .unsafeFlags(["-sanitize=fuzzer,address", "-D", "ADDRESS_SANITIZER"]),
]
let instrumented = ["-fsanitize=fuzzer-no-link,address"]

let package = Package(
    name: "pinfold",
    targets: [
        .systemLibrary(name: "CExpat", pkgConfig: "expat"),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib"),
        .systemLibrary(name: "CBrotli", pkgConfig: "libbrotlienc"),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd"),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl"),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1"),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CPublicSuffix", pkgConfig: "libpsl"),
        .target(
            name: "CRE2", cxxSettings: [.unsafeFlags(instrumented)],
            linkerSettings: [.linkedLibrary("re2")]),
        .target(
            name: "CImages",
            cSettings: [
                .unsafeFlags(instrumented),
                .define("FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION"),
            ],
            linkerSettings: [
                .linkedLibrary("jpeg"), .linkedLibrary("png16"), .linkedLibrary("webp"),
                .linkedLibrary("webpdemux"),
            ]),
        .target(
            name: "HTTPCore",
            swiftSettings: swift + [.enableExperimentalFeature("Lifetimes")]),
        .target(name: "HTTP2", dependencies: ["HTTPCore"], swiftSettings: swift),
        .target(name: "ProxyProtocols", dependencies: ["HTTPCore"], swiftSettings: swift),
        .target(name: "Documents", dependencies: ["CExpat", "HTTPCore"], swiftSettings: swift),
        .target(
            name: "CachePolicy", dependencies: ["COpenSSL", "HTTPCore"], swiftSettings: swift),
        .target(name: "Trust", dependencies: ["HTTPCore"], swiftSettings: swift),
        .target(
            name: "AccessPolicy", dependencies: ["HTTPCore", "Trust"], swiftSettings: swift),
        .target(
            name: "Authentication", dependencies: ["COpenSSL", "HTTPCore", "Trust"],
            swiftSettings: swift),
        .target(
            name: "PinfoldConfiguration",
            dependencies: ["HTTPCore", "Trust", "AccessPolicy", "Authentication"],
            swiftSettings: swift),
        .target(
            name: "ContentCoding", dependencies: ["CZlib", "CBrotli", "CZstd", "HTTPCore"],
            swiftSettings: swift),
        .target(
            name: "Transformation",
            dependencies: [
                "HTTPCore", "CachePolicy", "Documents", "ContentCoding", "PinfoldConfiguration",
            ], swiftSettings: swift),
        .target(
            name: "JSONSchema",
            dependencies: ["CRE2", "HTTPCore", "Documents", "Transformation"],
            swiftSettings: swift),
        .target(name: "RedisProtocol", dependencies: ["HTTPCore"], swiftSettings: swift),
        .target(
            name: "SharedCache", dependencies: ["COpenSSL", "HTTPCore", "CachePolicy"],
            swiftSettings: swift),
        .target(name: "ImageCodecs", dependencies: ["CImages"], swiftSettings: swift),
        .target(name: "Clocks", dependencies: ["CLinux"], swiftSettings: swift),
        .target(name: "Locking", dependencies: ["CLinux"], swiftSettings: swift),
        .target(name: "Threads", dependencies: ["CLinux", "Locking"], swiftSettings: swift),
        .target(
            name: "PinfoldTLS",
            dependencies: [
                "CLinux", "COpenSSL", "CPublicSuffix", "HTTPCore", "Trust", "Clocks", "Locking",
                "Threads",
            ], swiftSettings: swift),
        // Of the resolver only what reads answers: the rest needs c-ares and its thread.
        .target(
            name: "PinfoldResolver", dependencies: ["HTTPCore", "Clocks"],
            sources: ["DNSMessage.swift", "DomainName.swift", "Resolution.swift"],
            swiftSettings: swift),
        // Of the client only what reads fields and streams: a session needs nearly every module.
        .target(
            name: "PinfoldClient",
            dependencies: [
                "CLinux", "COpenSSL", "CZlib", "HTTPCore", "Files", "PinfoldTLS",
            ],
            exclude: ["PinfoldClient.docc"],
            sources: [
                "Cookies/Cookie.swift", "Cookies/CookieDate.swift", "Cookies/CookieFile.swift",
                "Cookies/CookieJar.swift", "Cookies/DiskFile.swift", "Cookies/HostName.swift",
                "Cookies/SetCookie.swift", "EventStreams", "HTTPAuthentication",
            ], swiftSettings: swift),
        .target(name: "Files", dependencies: ["CLinux"], swiftSettings: swift),
        // Of the gateway only what reads YAML: a configuration needs nearly every module.
        .target(
            name: "Gateway", dependencies: ["CLinux", "CYAML", "Files"],
            path: "Sources/Gateway/ConfigurationFile",
            sources: [
                "Loading/ConfigurationError.swift", "Loading/ConfigurationInputs.swift",
                "Reading/ConfigNode.swift", "Reading/FileState.swift", "Reading/Quoting.swift",
                "Reading/WrittenScalar.swift", "Reading/YAMLDocument.swift",
                "Reading/YAMLEvents.swift", "Reading/YAMLSyntaxError.swift",
            ], swiftSettings: swift),
        .target(
            name: "FuzzTargets",
            dependencies: [
                "COpenSSL", "HTTPCore", "HTTP2", "ProxyProtocols", "ContentCoding", "Trust",
                "AccessPolicy", "Authentication", "PinfoldConfiguration", "Documents",
                "Transformation", "JSONSchema", "RedisProtocol", "SharedCache", "ImageCodecs",
                "PinfoldTLS", "PinfoldResolver", "PinfoldClient", "Gateway",
            ], swiftSettings: swift),
        .systemLibrary(name: "CFuzzer"),
        .executableTarget(
            name: "fuzz", dependencies: ["CFuzzer", "FuzzTargets"],
            swiftSettings: [.swiftLanguageMode(.v6), .unsafeFlags(["-sanitize=address"])],
            linkerSettings: [.unsafeFlags(["-sanitize=address"])]),
    ])
