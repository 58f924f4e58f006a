// Writes the shapes of the API's description as TypeScript into out/openapi.ts, which shapes.ts takes its types from.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const DESCRIPTION = "../tests/golden/openapi.json";
const PLAIN = { string: "string", boolean: "boolean", null: "null", integer: "number", number: "number" };
const { schemas } = JSON.parse(readFileSync(DESCRIPTION, "utf8")).components;

function typeOf(schema) {
  const options = schema.anyOf ?? schema.oneOf;
  if (schema.$ref !== undefined) return `Schemas[${JSON.stringify(schema.$ref.split("/").at(-1))}]`;
  if (options !== undefined) return options.map(typeOf).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  if (schema.type === "array") return `(${typeOf(schema.items)})[]`;
  if (schema.type === "object") return objectOf(schema);
  if (PLAIN[schema.type] === undefined) throw new Error(`${DESCRIPTION}: no type for ${JSON.stringify(schema)}`);
  return PLAIN[schema.type];
}

/** Fields beyond the described ones may come, but nothing is known of them. */
function objectOf({ properties, required = [], additionalProperties: more }) {
  if (properties === undefined) return `Record<string, ${more === true ? "unknown" : typeOf(more)}>`;
  const fields = Object.entries(properties).map(([name, schema]) => {
    const mark = required.includes(name) ? "" : "?";
    return `    ${JSON.stringify(name)}${mark}: ${typeOf(schema)};\n`;
  });
  return `{\n${fields.join("")}  }`;
}

const made = Object.entries(schemas).map(([name, schema]) => `  ${JSON.stringify(name)}: ${typeOf(schema)};\n`);
mkdirSync("out", { recursive: true });
writeFileSync("out/openapi.ts", `// Made by types.mjs.\nexport interface Schemas {\n${made.join("")}}\n`);
